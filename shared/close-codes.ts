// The codes with which the coordinator closes WebSockets of clients.

/** The last two are registered with IANA. The OpenAPI document describes all. */
export const CLOSE_CODES = {
  complete: 1000,
  invalid: 1008,
  failed: 1011,
  stopping: 1012,
  overloaded: 1013,
  unauthorized: 3000,
  forbidden: 3003,
} as const

/** @param error why the client may no longer use the connection */
export function getCloseCode({ status }: { status: number }): number {
  if (status >= 500) return CLOSE_CODES.failed
  return status === 401 ? CLOSE_CODES.unauthorized : CLOSE_CODES.forbidden
}
