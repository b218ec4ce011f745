"""Pictures of a run: its trace as one page, and its timeline as SVG and PNG."""
