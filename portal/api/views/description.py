"""The OpenAPI description of the API itself."""

from __future__ import annotations

from drf_spectacular.views import SpectacularAPIView

description = SpectacularAPIView.as_view(authentication_classes=(), permission_classes=())
