// Signs in with an emailed code, or as the owner with sign-in.key. Returns the session.
import { hostname } from 'node:os'
import { readText } from '../../client/http/calls.ts'
import type { OpenResponse } from '../../client/http/transport.ts'
import type { IssuedCode, SignedIn } from '../../shared/api/sessions.ts'
import { SESSION_COOKIE } from '../../shared/session-cookie.ts'
import { VERSION } from '../../shared/version.ts'
import { createApiRequests } from '../connection/api-requests.ts'
import { TYPED_URL } from '../connection/find-coordinator.ts'
import { addHints } from '../connection/refusals.ts'
import { invalidDataError } from '../connection/server-data.ts'
import { CliError } from '../output/exit-codes.ts'
import { printMessage, printStderr, sanitize } from '../output/print.ts'
import { createLineReader, type LineReader } from './read-line.ts'
import type { Target } from './target.ts'

/** `cookie`: the value of the session cookie. */
export type NewSession = SignedIn & { cookie: string }

/** A user may type the code this often. The coordinator allows five attempts. */
const MAX_ATTEMPTS = 3

export async function signInAsOwner(
  { baseUrl }: Target,
  { secret, path }: NonNullable<Target['signInKey']>,
  signal: AbortSignal,
): Promise<NewSession> {
  return addHints(post(baseUrl, '/sign-in/owner', { secret }, signal), {
    unauthorized: `Check that the coordinator there has written ${path}.`,
  })
}

/** @param email undefined: asks for it */
export async function signInByEmail(
  { baseUrl }: Target,
  email: string | undefined,
  signal: AbortSignal,
): Promise<NewSession> {
  await assertCoordinator(baseUrl, signal)
  const lines = createLineReader(signal)
  try {
    const address = email ?? (await lines.ask('Email: '))
    const requests = createRequests(baseUrl, signal)
    const { id } = await requests.json<IssuedCode>('POST', '/api/v1/sign-in', { body: { email: address } })
    printStderr(
      `If ${sanitize(address)} is a member, a code has been sent to that address. A coordinator without a mail server prints it on its terminal, after \`box up\` in coordinator.log in its data directory.`,
    )
    return await askForCode(lines, (code) => post(baseUrl, '/sign-in/confirm', { id, code }, signal))
  } finally {
    lines.close()
  }
}

/** Asks again for a code that `confirm` refuses, on a terminal. */
export async function askForCode<T>(lines: LineReader, confirm: (code: string) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const code = await lines.ask('Code: ')
    try {
      return await confirm(code)
    } catch (error) {
      const isWrongCode =
        error instanceof CliError && ['invalid_code', 'bad_request'].includes(error.code ?? '')
      if (!isWrongCode || !process.stdin.isTTY || attempt >= MAX_ATTEMPTS) throw error
      printMessage('This is not the code. Try again.')
    }
  }
}

/**
 * Sends a request without a credential, which a coordinator refuses: the user types nothing for a wrong URL.
 * @throws CliError when no coordinator responds
 */
export async function assertCoordinator(baseUrl: string, signal: AbortSignal): Promise<void> {
  try {
    await createRequests(baseUrl, signal).json('GET', '/api/v1/me')
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'unauthorized') throw error
  }
}

/** Switches the session to another workspace: the coordinator replaces the cookie. */
export const switchWorkspace = (
  baseUrl: string,
  cookie: string,
  workspaceId: string,
  signal: AbortSignal,
): Promise<NewSession> => post(baseUrl, '/session/workspace', { workspaceId }, signal, cookie)

/** Requests without a credential, or with the cookie. */
const createRequests = (baseUrl: string, signal: AbortSignal, cookie?: string) =>
  createApiRequests(
    {
      baseUrl,
      key: null,
      urlSource: TYPED_URL,
      keySource: '',
      ...(cookie !== undefined && { profile: { name: '', url: baseUrl, session: cookie } }),
    },
    { signal },
  )

async function post(
  baseUrl: string,
  path: string,
  body: unknown,
  signal: AbortSignal,
  cookie?: string,
): Promise<NewSession> {
  // Identifies the session in the list of sessions.
  const headers = { 'user-agent': `box/${VERSION} (${hostname()})` }
  const requests = createRequests(baseUrl, signal, cookie)
  const response = await requests.open('POST', `/api/v1${path}`, { body }, { headers })
  const signedIn = JSON.parse(await readText(response)) as SignedIn
  return { ...signedIn, cookie: parseCookie(response) }
}

function parseCookie({ headers }: OpenResponse): string {
  const pattern = new RegExp(`(?:^|, )${SESSION_COOKIE}=([^;]*)`)
  const [, value] = pattern.exec(headers.get('set-cookie') ?? '') ?? []
  if (!value || !/^[\x21-\x7e]+$/.test(value)) throw invalidDataError('no session cookie')
  return value
}
