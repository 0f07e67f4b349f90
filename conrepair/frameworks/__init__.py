"""One file per framework: recognise, load, describe, run. Frameworks are imported when first used."""
