"""The samples on which a repair is verified: those that took no part in finding it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conrepair.data.sample_axes import with_axes_of
from conrepair.frameworks.model import Model
from conrepair.frameworks.runnable import Runnable
from conrepair.localization.fed_model import FedModel
from conrepair.repairs.options import RepairOptions
from conrepair.repairs.outcomes import Agreement
from conrepair.repairs.verify import SampledAnswers, agreement, answers, shared_batch

__all__ = ["Unseen", "unseen_samples"]


@dataclass(frozen=True)
class Unseen:
    """Samples that took no part.

    Attributes:
        begin: The first of them in the dataset.
        count: How many at most.
        batch_size: Of models that leave it open.
        labels: Of these samples; None where one isn't known.
    """

    begin: int
    count: int
    batch_size: int
    labels: tuple[int | None, ...]

    def answers(self, subject: FedModel, model: Model, runnable: Runnable | None = None) -> Iterator[SampledAnswers]:
        """As `verify.answers`, to these samples."""
        return answers(
            subject, model, begin=self.begin, count=self.count, batch_size=self.batch_size, runnable=runnable
        )

    def agreement(self, right: Iterable[SampledAnswers], given: Iterable[SampledAnswers]) -> Agreement:
        """As `verify.agreement`, with these samples' labels."""
        return agreement(right, given, labels=self.labels)


def unseen_samples(source: FedModel, target: FedModel, options: RepairOptions) -> Unseen:
    """Those behind the samples that layers are looked at with; these again where the dataset has no more.

    Args:
        source: The model that is right.
        target: The model in question.
        options: Samples, and their labels.
    """
    seen = options.localization.samples
    begin = seen if min(source.data.count, target.data.count) > seen else 0
    batch = shared_batch(source.inputs, with_axes_of(target.inputs, source.inputs))
    return Unseen(begin, options.unseen, batch, options.labels[begin:])
