// Sends a build of the agent to a machine, which downloads, verifies and unpacks the archive.
import type { AgentBuild } from '../../../shared/agent-build.ts'
import type { Tunnel } from '../tunnel/types.ts'

/** The agent responds when the build is installed. Its download may be slow. */
const INSTALL_TIMEOUT_MS = 30 * 60_000
/** The maximum length of an error message, in characters. */
const MAX_MESSAGE_LENGTH = 500
const MAX_RESPONSE_BYTES = 16 * 1024

/** Throws Error with the message of the agent. */
export async function installBuild(tunnel: Tunnel, build: AgentBuild): Promise<void> {
  const { platform, version, buildId, size, sha256, signature } = build
  const { status, body } = await tunnel.call({
    method: 'POST',
    path: '/upgrade',
    body: JSON.stringify({ platform, version, buildId, size, sha256, signature }),
    timeoutMs: INSTALL_TIMEOUT_MS,
    maxBytes: () => MAX_RESPONSE_BYTES,
  })
  if (status < 300) return
  throw new Error(readMessage(body.toString()) ?? `POST /upgrade returned status ${status}`)
}

/** The message of the error envelope. The agent is untrusted: one line, bounded, without control characters. */
function readMessage(json: string): string | null {
  try {
    const { error } = JSON.parse(json) as { error?: { message?: unknown } }
    if (typeof error?.message !== 'string') return null
    return error.message.replace(/\p{C}+/gu, ' ').slice(0, MAX_MESSAGE_LENGTH)
  } catch {
    return null
  }
}
