// What to do about a server that refuses the connection.

/** For the end of a sentence. */
export const UNTRUSTED_CLIENT =
  'it does not trust the client certificate of the coordinator. Set BOXWOOD_INCUS_CERT and BOXWOOD_INCUS_KEY, and run on the server: incus config trust add-certificate FILE, with the file of BOXWOOD_INCUS_CERT'

/** @param message the error of a TLS connection, or of the request to open a WebSocket */
export function explainConnectionProblem(message: string): string {
  if (/\b40[13]\b/.test(message)) return UNTRUSTED_CLIENT
  if (/self[- ]signed certificate|unable to verify|unable to get (local )?issuer/i.test(message))
    return 'its certificate is not signed by a known authority. Set BOXWOOD_INCUS_SERVER_CERT to a copy of /var/lib/incus/cluster.crt of a cluster, or of /var/lib/incus/server.crt of a single server'
  return message
}
