"""The visible part of a drawing: scale and offset of each axis, as a value."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Camera:
    """Screen = (world - origin) * scale, for x and y separately.

    Attributes:
        x: world coordinate at the left side of the screen
        y: world coordinate at its upper side
        sx: pixels per unit of x
        sy: pixels per unit of y
    """

    x: float = 0.0
    y: float = 0.0
    sx: float = 1.0
    sy: float = 1.0

    def to_screen(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a world point."""
        return (x - self.x) * self.sx, (y - self.y) * self.sy

    def to_world(self, px: float, py: float) -> tuple[float, float]:
        """Return the world point of a pixel."""
        return self.x + px / self.sx, self.y + py / self.sy

    def panned(self, dx: float, dy: float) -> Camera:
        """Return the camera after the drawing moved by pixels."""
        return replace(self, x=self.x - dx / self.sx, y=self.y - dy / self.sy)

    def zoomed(self, factor: float, px: float, py: float, limits: tuple[float, float]) -> Camera:
        """Return the camera scaled on both axes; the world point under a pixel stays there.

        Args:
            factor: above 1 zooms in
            px: pixel that stays
            py: its y
            limits: least and largest scale of x
        """
        least, most = limits
        sx = min(max(self.sx * factor, least), most)
        ratio = sx / self.sx
        x, y = self.to_world(px, py)
        sy = self.sy * ratio
        return Camera(x - px / sx, y - py / sy, sx, sy)

    def stretched(self, factor: float, px: float, limits: tuple[float, float]) -> Camera:
        """Return the camera scaled on the x axis only."""
        least, most = limits
        sx = min(max(self.sx * factor, least), most)
        return replace(self, x=self.x + px / self.sx - px / sx, sx=sx)

    def centred(self, x: float, y: float, width: float, height: float) -> Camera:
        """Return the camera with a world point in the middle of a screen of that size."""
        return replace(self, x=x - width / 2 / self.sx, y=y - height / 2 / self.sy)

    def view(self, width: float, height: float) -> tuple[float, float, float, float]:
        """Return left, top, right, bottom of the visible area, in world coordinates."""
        return self.x, self.y, self.x + width / self.sx, self.y + height / self.sy


def fitted(
    box: tuple[float, float, float, float],
    screen: tuple[float, float],
    margin: float,
    limits: tuple[float, float],
) -> Camera:
    """Return the camera that shows a whole box in the middle of the screen, undistorted.

    Args:
        box: x, y, width, height in the world
        screen: width and height in pixels
        margin: pixels kept free around
        limits: least and largest scale
    """
    x, y, width, height = box
    free = (max(screen[0] - 2 * margin, 1.0), max(screen[1] - 2 * margin, 1.0))
    scale = min(free[0] / max(width, 1e-9), free[1] / max(height, 1e-9))
    scale = min(max(scale, limits[0]), limits[1])
    camera = Camera(0.0, 0.0, scale, scale)
    return camera.centred(x + width / 2, y + height / 2, *screen)
