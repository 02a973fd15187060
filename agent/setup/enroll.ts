// Exchanges the enrolment token for a box: the coordinator stores the hash of a token that only this machine has.
import { createHash } from 'node:crypto'
import { availableParallelism, hostname, totalmem } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import * as z from 'zod'
import type { SelectProxy } from '../tunnel/proxy.ts'
import { describeConnectionError } from './connection-error.ts'
import { type JsonResponse, sendJson } from './request.ts'
import { SetupError } from './setup-error.ts'

const ENROLL_PATH = '/agent/enroll'
const TIMEOUT_MS = 20_000
/** Repeating the exchange with the same agent token has no further effect, so a lost response does no harm. */
const RETRY_DELAYS_MS = [500, 1000, 2000, 4000, 8000]

const responseSchema = z.object({ boxId: z.uuid(), name: z.string().min(1) })
export type Enrollment = z.infer<typeof responseSchema>

const errorSchema = z.object({ message: z.string().min(1) })

export type EnrollOptions = {
  url: string
  /** bxe_… */
  token: string
  /** bxt_…, stored on this machine before this call. */
  agentToken: string
  platform: string
  agentVersion: string
  selectProxy: SelectProxy
  signal: AbortSignal
}

/** @throws SetupError */
export async function enroll(options: EnrollOptions): Promise<Enrollment> {
  const { url, token, agentToken, platform, agentVersion, selectProxy, signal } = options
  const body = {
    token,
    agentTokenHash: createHash('sha256').update(agentToken).digest('hex'),
    hostname: hostname(),
    platform,
    agentVersion,
    cpus: availableParallelism(),
    memoryBytes: getMemoryBytes(),
  }
  const send = () =>
    sendJson(url, { method: 'POST', path: ENROLL_PATH, body, timeoutMs: TIMEOUT_MS, signal }, selectProxy)
  const { status, body: answer } = await sendWithRetries(send, options)
  if (status === 200 || status === 201) {
    const enrollment = responseSchema.safeParse(answer)
    if (enrollment.success) return enrollment.data
  }
  const rejection = errorSchema.safeParse(answer)
  throw new SetupError(
    rejection.success
      ? rejection.data.message
      : `${url} does not respond as a Boxwood coordinator (HTTP status ${status}). Check the URL.`,
  )
}

/** The memory of the container if it has a limit, else that of the machine. */
function getMemoryBytes(): number {
  const limit = process.constrainedMemory()
  return limit > 0 && limit < totalmem() ? limit : totalmem()
}

async function sendWithRetries(
  send: () => Promise<JsonResponse>,
  { url, signal }: Pick<EnrollOptions, 'url' | 'signal'>,
): Promise<JsonResponse> {
  for (let attempt = 0; ; attempt += 1) {
    const result = await send().catch((error: Error) => error)
    signal.throwIfAborted()
    const delay = RETRY_DELAYS_MS[attempt]
    const isFinal = delay === undefined
    if (isFinal && result instanceof Error) throw new SetupError(describeConnectionError(url, result))
    if (!(result instanceof Error) && (isFinal || (result.status < 500 && result.status !== 429)))
      return result
    await sleep(delay, undefined, { signal }).catch(() => signal.throwIfAborted())
  }
}
