// The page of GET /sign-in. sign-in.js sends the requests. URLs are relative, for proxies that add a path.
import { MARK_ELEMENT, MARK_ICON } from '../../../shared/mark.ts'

const EMAIL_FORM = `<form id="email-form">
<p><label for="email">Email address</label><br>
<input id="email" type="email" autocomplete="email" maxlength="254" required></p>
<p><button class="primary">Send code</button></p>
</form>`

const OWNER_FORM = `<form id="owner-form">
<p>On the machine of the coordinator, <code>box open</code> prints a link that signs you in.</p>
<p><label for="secret">Or paste the content of the file sign-in.key in the data directory</label><br>
<input id="secret" type="password" autocomplete="off" maxlength="200" required></p>
<p><button class="primary">Sign in as the owner</button></p>
</form>`

const EMAIL = { title: 'Sign in with an email address', form: EMAIL_FORM }
const OWNER = { title: 'Sign in as the owner of this coordinator', form: OWNER_FORM }

/** @param options.isOwnerFirst no person has an email address yet */
export function createSignInPage({ isOwnerFirst }: { isOwnerFirst: boolean }): string {
  const [first, second] = isOwnerFirst ? [OWNER, EMAIL] : [EMAIL, OWNER]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in · Boxwood</title>
<link rel="icon" href="${MARK_ICON}">
<link rel="stylesheet" href="docs/page.css">
<script type="module" src="docs/sign-in.js"></script>
</head>
<body class="card-page">
<main>
${MARK_ELEMENT}
<h1>Sign in to Boxwood</h1>
<noscript>This page needs JavaScript.</noscript>
<p id="insecure" role="alert" hidden>This page was loaded over http from another machine. Browsers store the sign-in only for https pages and for localhost. Open the https address of this coordinator.</p>
<section id="start" hidden>
${first.form}
<details>
<summary>${second.title}</summary>
${second.form}
</details>
</section>
<form id="code-form" hidden>
<p>If <strong class="sent-to"></strong> is the address of a member, a code was sent to it. Without a mail server the code is in the output of the coordinator, which its operator sees.</p>
<p><label for="code">Code</label><br>
<input id="code" autocomplete="one-time-code" autocapitalize="characters" spellcheck="false" placeholder="XXXX-XXXX" maxlength="32" required></p>
<p><button class="primary">Sign in</button> <button type="button" id="back">Use another address</button></p>
</form>
<section id="done" hidden>
<p>You are signed in as <strong class="user"></strong> in the workspace <strong class="workspace"></strong>.</p>
<p><a id="next" hidden>Continue</a> <a href="./">Show the boxes</a> <button type="button" id="sign-out">Sign out</button></p>
</section>
<p id="error" role="alert"></p>
</main>
</body>
</html>
`
}
