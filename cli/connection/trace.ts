// --verbose: prints each request on stderr, without the API key.
import { printMessage, sanitize } from '../output/print.ts'

/** Set by --verbose, or by the user. */
const VARIABLE = 'BOXWOOD_DEBUG'

export function enableTrace(): void {
  process.env[VARIABLE] = '1'
}

export type TraceResult = { status: number; headers?: { get(name: string): string | null } }

/** Returns a function that prints the request with its result; for a request without a response, with the error. */
export function traceRequest(method: string, url: string): (result: TraceResult | Error) => void {
  if (!process.env[VARIABLE] || process.env[VARIABLE] === '0') return () => undefined
  const startedAt = performance.now()
  return (result) => {
    const duration = `${Math.round(performance.now() - startedAt)} ms`
    const outcome = result instanceof Error ? `failed: ${result.message}` : `${result.status}`
    const requestId = result instanceof Error ? null : (result.headers?.get('x-request-id') ?? null)
    const request = requestId === null ? '' : `, request ${requestId}`
    printMessage(sanitize(`${method} ${url}: ${outcome}, ${duration}${request}`))
  }
}
