// A link that signs in the owner in a browser, once. On the machine of the coordinator only: it needs sign-in.key.
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { SignInLinkResponse } from '../../shared/api/sessions.ts'
import { isLoopback } from '../../shared/loopback.ts'
import { createApiRequests } from '../connection/api-requests.ts'
import { getRootUrl, TYPED_URL } from '../connection/find-coordinator.ts'
import { openUrl } from '../output/open-url.ts'
import { findSignIn } from './target.ts'

export type OpenableLink = { url: string; expiresAt: string; dataDir: string }

/** null: the coordinator runs on another machine, the profile is that of a member, or browsers would not store the session. */
export async function createSignInLink(signal: AbortSignal): Promise<OpenableLink | null> {
  const { baseUrl, signInKey } = findSignIn(undefined, {}, process.env, process.cwd())
  const { protocol, hostname } = new URL(baseUrl)
  if (signInKey === null || (protocol !== 'https:' && !isLoopback(hostname))) return null
  const { secret } = signInKey
  const config = { baseUrl, key: null, urlSource: TYPED_URL, keySource: '' }
  const { json } = createApiRequests(config, { signal })
  const body = { secret }
  const link = await json<SignInLinkResponse>('POST', '/api/v1/sign-in/owner/link', { body })
  const url = `${getRootUrl(baseUrl)}/sign-in#${link.secret}`
  return { url, expiresAt: link.expiresAt, dataDir: dirname(signInKey.path) }
}

/**
 * Other users of the machine can read the arguments of xdg-open and of the browser: they name a file that only this user can
 * read, and the file leads to the link.
 */
export async function openSignInLink({ url, dataDir }: OpenableLink): Promise<void> {
  const file = join(dataDir, 'sign-in.html')
  await openUrl(url, () => {
    writeFileSync(file, formatRedirect(url), { mode: 0o600 })
    return pathToFileURL(file).href
  })
}

/** The URL has no character to escape. */
const formatRedirect = (url: string): string => `<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${url}">
<title>Boxwood</title>
<p><a href="${url}">Sign in to Boxwood</a></p>
`
