"""Django's settings, derived from `portal.config`. One file: the modes differ only in values."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from portal.config import ROOT, config
from portal.core.logs import logging_configuration

SECRET_KEY = config.secret_key()
DEBUG = config.debug
ALLOWED_HOSTS = config.allowed_hosts
CSRF_TRUSTED_ORIGINS = [config.public_url]
ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
ASGI_APPLICATION = "portal.asgi.application"
AUTH_USER_MODEL = "accounts.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [ROOT / "frontend" / "locale"]
LOGIN_URL = "web:sign-in"
LOGIN_REDIRECT_URL = "web:home"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "portal.core",
    "portal.accounts",
    "portal.fleet",
    "quotas",
    "billing",
    "jobs",
    "portal.api",
    "portal.web",
    "portal.ops",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.web.security.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "frontend" / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["portal.web.templatetags.units"],
        },
    }
]


def _database() -> dict[str, Any]:
    if not config.database_url:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": config.data / "portal.sqlite3",
            # A thread keeps its connection, and with it its cache: opening costs milliseconds.
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 3,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
            },
        }
    url = urlsplit(config.database_url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": url.path.removeprefix("/"),
        "USER": unquote(url.username or ""),
        "PASSWORD": config.database_password() or unquote(url.password or ""),
        "HOST": url.hostname or "",
        "PORT": url.port or "",
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"options": "-c lock_timeout=3000"},
    }


DATABASES = {"default": _database()}

CACHES = {
    "default": (
        {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
        if config.embedded
        else {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": config.redis_url,
        }
    )
}

PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.ScryptPasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]


def _log_storage() -> dict[str, Any]:
    if not config.log_storage_url:
        return {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {
                "location": config.data / "logs",
                "file_permissions_mode": 0o600,
                "directory_permissions_mode": 0o700,
            },
        }
    url = urlsplit(config.log_storage_url)
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {"bucket_name": url.hostname, "location": url.path.strip("/")},
    }


STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "logs": _log_storage(),
}

STATIC_URL = "/static/"
STATIC_ROOT = ROOT / "frontend" / "static"

_secure = config.public_url.startswith("https://")
LANGUAGE_COOKIE_AGE = 31_536_000
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_SECURE = _secure
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = _secure
CSRF_COOKIE_SECURE = _secure
SECURE_SSL_REDIRECT = False  # The proxy in front ends TLS and redirects.
SECURE_HSTS_SECONDS = 31_536_000 if _secure else 0
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.api.authentication.TokenAuthentication",
        "portal.api.authentication.BrowserSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["portal.api.authentication.SignedIn"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.api.parsing.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "portal.api.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "GPU Commons",
    "DESCRIPTION": "Submit jobs to shared GPUs, follow them and see what they cost.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "RoleEnum": ["viewer", "member", "project_admin", "tenant_admin"],
        "ProjectRoleEnum": ["viewer", "member", "project_admin"],
    },
}

SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # HSTS for subdomains: only this host is ours to decide
    "security.W008",  # the proxy in front ends TLS and redirects
    "security.W021",  # preloading HSTS is the decision of the domain's owner
]

LOGGING_CONFIG = None
LOGGING = logging_configuration(config.log_level)
