"""Typeset the ``math`` blocks of the documentation as MathML, which browsers draw by themselves: a hook of MkDocs."""

from typing import Any

from docutils.utils.math.latex2mathml import tex2mathml


def block(source: str, language: str, css_class: str, options: dict[str, Any], md: Any, **others: Any) -> str:
    """The equation of a fenced block, in the signature that superfences ask for."""
    del language, options, md, others
    equation = tex2mathml(source.strip(), as_block=True)
    return f'<div class="{css_class}">{equation}</div>'


def on_config(config: Any) -> Any:
    """Draw blocks whose language is ``math`` (GitHub does so, too)."""
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = [{"name": "math", "class": "math", "format": block}]
    return config
