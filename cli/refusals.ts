// From what went wrong to a sentence that says what to do, with the exit code.
import { EXIT, Failure } from './exit-codes.ts'
import type { Place } from './locate.ts'
import { printable } from './output.ts'

const EXIT_OF_CODE: Record<string, number> = {
  unauthorized: EXIT.notSignedIn,
  token_expired: EXIT.notSignedIn,
  verification_required: EXIT.notSignedIn,
  not_found: EXIT.notFound,
  box_unreachable: EXIT.unreachable,
  control_plane_unavailable: EXIT.unreachable,
}

const SYSTEM_WORDS: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name cannot be looked up',
  ECONNRESET: 'the connection broke off',
  ETIMEDOUT: 'no answer',
  EHOSTUNREACH: 'no way to that host',
  EPIPE: 'the connection broke off',
}

/** For an exchange that ended without an answer, or within it. */
export function unreachable(error: unknown, { baseUrl, urlFrom }: Place): Failure {
  if (error instanceof Failure) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const why = SYSTEM_WORDS[code] ?? (error instanceof Error ? error.message : String(error))
  const todo =
    urlFrom === 'BOXWOOD_URL' ? 'Check BOXWOOD_URL, and that it runs.' : 'Start it with `npm start`.'
  const said = `Cannot reach the coordinator at ${new URL(baseUrl).origin} (${why}). ${todo}`
  return new Failure(EXIT.unreachable, said, { cause: error })
}

/** For an answer that is not 2xx, or not JSON. Reads both envelopes (spec §1). */
export function refusal(status: number, answer: Buffer, { baseUrl, urlFrom, keyFrom }: Place): Failure {
  const { code, message } = envelope(answer)
  if (code === null) {
    const said = `${new URL(baseUrl).origin} answered (HTTP ${status}), but not as a coordinator does.`
    return new Failure(EXIT.refused, `${said} Check the address in ${urlFrom}.`)
  }
  const exitCode = EXIT_OF_CODE[code] ?? EXIT.refused
  if (code === 'unauthorized' || code === 'token_expired') {
    const why = code === 'token_expired' ? 'has expired' : 'is not accepted'
    const todo = 'Put a valid one into BOXWOOD_API_KEY.'
    const said = `The API key in ${keyFrom} ${why} by ${new URL(baseUrl).origin}. ${todo} (${code})`
    return new Failure(exitCode, said.replace('expired by', 'expired at'), { code })
  }
  return new Failure(exitCode, `${printable(message ?? 'Refused.')} (${printable(code)})`, { code })
}

function envelope(answer: Buffer): { code: string | null; message: string | null } {
  try {
    const { error, message } = JSON.parse(answer.toString()) as { error?: unknown; message?: unknown }
    const inner = typeof error === 'object' && error !== null ? error : { code: error, message }
    return { code: textOf(inner, 'code'), message: textOf(inner, 'message') }
  } catch {
    return { code: null, message: null }
  }
}

function textOf(from: object, name: string): string | null {
  const value = name in from ? (from as Record<string, unknown>)[name] : null
  return typeof value === 'string' ? value : null
}
