"""What the backlog will do: a pure model of the drain, the forecast that rests on it, and plans played beforehand."""
