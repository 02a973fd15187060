// The page of GET /docs. docs.js shows the OpenAPI document with Swagger UI. URLs are relative, for proxies that add a path.
import { MARK_ICON } from '../../../shared/mark.ts'

export const DOCS_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference · Boxwood</title>
<link rel="icon" href="${MARK_ICON}">
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/docs.css">
<script defer src="docs/swagger-ui-bundle.js"></script>
<script type="module" src="docs/docs.js"></script>
</head>
<body>
<nav><a href="./">Boxwood</a> <a href="openapi.json">openapi.json</a></nav>
<div id="reference"><noscript>The API reference needs JavaScript. The same content is in <a href="openapi.json">openapi.json</a>.</noscript></div>
</body>
</html>
`
