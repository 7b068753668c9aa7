from lanewise.results.outline import Outline

STYLE = ""


def draw(outline: Outline, alone: bool = True) -> str:
    return "<svg/>"
