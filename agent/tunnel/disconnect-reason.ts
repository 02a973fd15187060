// Why the agent is not connected.

/**
 * Why an attempt failed or a connection closed. Of a rejection: the HTTP status, and the error code and message if the
 * coordinator has sent them.
 */
export type DisconnectReason = {
  reason: string
  status?: number
  code?: string
  message?: string
  reconnectAfterMs?: number
}
