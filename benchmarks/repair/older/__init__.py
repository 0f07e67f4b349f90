"""The conversions of the older ConRepAIr, each prepared rightly and wrongly, audited and repaired."""
