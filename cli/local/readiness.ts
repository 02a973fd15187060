// Reads whether a coordinator accepts requests.
import { readText } from '../../client/http/calls.ts'
import { sendRequest } from '../connection/http-request.ts'

export type Readiness = 'ready' | 'starting' | 'stopping' | 'not responding'

const TIMEOUT_MS = 5_000

/** GET /readyz, which needs no key. */
export async function readReadiness(url: string, signal: AbortSignal): Promise<Readiness> {
  try {
    const timeoutSignal = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])
    const response = await sendRequest({
      method: 'GET',
      url: `${url}/readyz`,
      headers: {},
      signal: timeoutSignal,
    })
    const { ok, reason } = JSON.parse(await readText(response)) as {
      ok?: boolean
      reason?: string
    }
    if (ok === true) return 'ready'
    if (reason === 'starting') return 'starting'
    return reason === 'draining' ? 'stopping' : 'not responding'
  } catch {
    signal.throwIfAborted()
    return 'not responding'
  }
}
