// Verifies that a token can assume a role: one unsigned request to the Security Token Service of AWS. The operator chooses the
// endpoint. The credentials of the response are dropped.
import { replaceControlCharacters } from '../../../shared/report-limits.ts'
import type { SecretValue } from '../../base/sealing/secret-value.ts'
import { parseStsResponse, type VerifyResult } from './parse-sts-response.ts'

/** Never rejects. */
export type AssumeRole = (input: {
  roleArn: string
  sessionName: string
  token: SecretValue
}) => Promise<VerifyResult>

export type StsOptions = {
  endpoint: string
  /** Default: that of Node. */
  fetch?: typeof fetch
  /** Default: 10 s. */
  timeoutMs?: number
}

const DEFAULT_TIMEOUT_MS = 10_000
const MAX_RESPONSE_BYTES = 64 * 1024
const MAX_ERROR_CHARS = 500
/** The shortest session. */
const SESSION_SECONDS = '900'

export const getStsEndpoint = (config: { awsStsEndpoint: string | null; awsRegion: string | null }): string =>
  config.awsStsEndpoint ??
  (config.awsRegion === null
    ? 'https://sts.amazonaws.com'
    : `https://sts.${config.awsRegion}.amazonaws.com${config.awsRegion.startsWith('cn-') ? '.cn' : ''}`)

export function createAssumeRole(options: StsOptions): AssumeRole {
  const { endpoint, fetch: send = fetch, timeoutMs = DEFAULT_TIMEOUT_MS } = options

  return async ({ roleArn, sessionName, token }) => {
    const body = new URLSearchParams({
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: roleArn,
      RoleSessionName: sessionName,
      DurationSeconds: SESSION_SECONDS,
      WebIdentityToken: token.reveal(),
    })
    try {
      const response = await send(endpoint, {
        method: 'POST',
        body,
        headers: { accept: 'application/xml' },
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      })
      const text = await readBounded(response)
      return parseStsResponse(text) ?? { error: `STS responded with status ${response.status}.` }
    } catch (error) {
      return { error: describeError(error, endpoint, timeoutMs) }
    }
  }
}

/** @throws Error for a body above the limit */
async function readBounded({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > MAX_RESPONSE_BYTES) throw new Error('the response is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** The error of fetch() has the reason in its cause. Neither has the body of the request. */
function describeError(error: unknown, endpoint: string, timeoutMs: number): string {
  const { host } = new URL(endpoint)
  if (error instanceof Error && error.name === 'TimeoutError')
    return `STS (${host}) did not respond within ${timeoutMs / 1000} seconds.`
  const { cause = error } = error as Error
  const reason = cause instanceof Error ? cause.message || cause.name : String(cause)
  return replaceControlCharacters(`STS (${host}) could not be reached: ${reason}`).slice(0, MAX_ERROR_CHARS)
}
