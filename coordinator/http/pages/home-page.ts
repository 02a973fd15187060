// The page that a browser gets for GET /.

/** @param publicUrl an http or https origin, as `new URL()` formats it: it contains no character to escape in HTML */
export const createHomePage = (publicUrl: string, version: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Boxwood</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/page.css">
</head>
<body>
<main>
<h1>Boxwood <small>${version}</small></h1>
<p>This is the coordinator of a Boxwood installation. Boxwood hosts boxes: Linux machines on which people and coding agents work.</p>
<p><a href="sign-in">Sign in</a> · <a href="docs">API reference</a> · <a href="openapi.json">OpenAPI document</a></p>
<h2>Command line</h2>
<p>On the coordinator's machine, in the directory of Boxwood, this command puts <code>box</code> on the <code>PATH</code>:</p>
<pre>./box install</pre>
<p>On another machine, install Boxwood too, and set the URL and an API key:</p>
<pre>export BOXWOOD_URL=${publicUrl}
export BOXWOOD_API_KEY=dcp_…
box ls</pre>
<p>The owner's API key is in the file <code>owner.key</code> of the coordinator's data directory.</p>
</main>
</body>
</html>
`
