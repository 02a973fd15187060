// Finds the Incus server of this machine in the order in which the incus command finds it.
import { join } from 'node:path'

export type IncusCandidate = {
  /** What names the server, such as `INCUS_SOCKET`; null: it has a usual path. */
  source: string | null
  /** The absolute path of its socket, or its https URL. */
  address: string
}

/** Returns the candidates, the preferred one first. An address from a variable is the only candidate. */
export function listIncusServers(
  configured: string | null,
  env: Readonly<Record<string, string | undefined>>,
): IncusCandidate[] {
  if (configured !== null) return [{ source: 'BOXWOOD_INCUS', address: configured }]
  if (env.INCUS_SOCKET) return [{ source: 'INCUS_SOCKET', address: env.INCUS_SOCKET }]
  if (env.INCUS_DIR) return [{ source: 'INCUS_DIR', address: join(env.INCUS_DIR, 'unix.socket') }]
  return ['/var/lib/incus/unix.socket', '/run/incus/unix.socket'].map((address) => ({
    source: null,
    address,
  }))
}
