// --verbose: prints each request on stderr, without the API key.
import { printMessage, sanitize } from '../output/print.ts'

/** Set by --verbose, or by the user. */
const VARIABLE = 'BOXWOOD_DEBUG'

export function enableTrace(): void {
  process.env[VARIABLE] = '1'
}

export type TraceResult = {
  statusCode?: number | undefined
  headers?: Record<string, string | string[] | undefined>
}

/** Returns a function that prints the request with its result; for a request without a response, with the error. */
export function traceRequest(method: string, url: string): (result: TraceResult | Error) => void {
  if (!process.env[VARIABLE] || process.env[VARIABLE] === '0') return () => undefined
  const startedAt = performance.now()
  return (result) => {
    const duration = `${Math.round(performance.now() - startedAt)} ms`
    const outcome = result instanceof Error ? `failed: ${result.message}` : `${result.statusCode}`
    const requestId = result instanceof Error ? undefined : result.headers?.['x-request-id']
    const request = requestId === undefined ? '' : `, request ${requestId}`
    printMessage(sanitize(`${method} ${url}: ${outcome}, ${duration}${request}`))
  }
}
