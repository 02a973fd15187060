// Reads the name and the version of a coordinator.

import { readText } from '../../client/http/calls.ts'
import { VERSION } from '../../shared/version.ts'
import { sendRequest } from '../connection/http-request.ts'
import { sanitize } from '../output/print.ts'

export type ServerInfo = { version: string; apiVersion: string | null }

const TIMEOUT_MS = 5_000
const MAX_LENGTH = 64

/** GET /, which needs no key. Returns null when there is no response, or not that of a coordinator, such as of a proxy. */
export async function readServerInfo(root: string, signal: AbortSignal): Promise<ServerInfo | null> {
  try {
    const timeoutSignal = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])
    const headers = { accept: 'application/json' }
    const response = await sendRequest({ method: 'GET', url: `${root}/`, headers, signal: timeoutSignal })
    const info = JSON.parse(await readText(response)) as Record<string, unknown>
    if (info.name !== 'boxwood' || typeof info.version !== 'string') return null
    return {
      version: clean(info.version),
      apiVersion: typeof info.apiVersion === 'string' ? clean(info.apiVersion) : null,
    }
  } catch {
    signal.throwIfAborted()
    return null
  }
}

const clean = (text: string): string => sanitize(text.slice(0, MAX_LENGTH))

/** @param serverVersion differs from the version of box */
export const describeSkew = (serverVersion: string): string =>
  `box has version ${VERSION}, the coordinator ${serverVersion}. Update the older one.`
