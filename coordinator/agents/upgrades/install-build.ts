// Sends a build of the agent to a machine, which downloads, verifies and unpacks the archive.
import type { Readable } from 'node:stream'
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
  const { status, body } = await tunnel.request({
    method: 'POST',
    path: '/upgrade',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ platform, version, buildId, size, sha256, signature })),
    headTimeoutMs: INSTALL_TIMEOUT_MS,
  })
  if (status < 300) return void body.destroy()
  throw new Error(readMessage(await readStart(body)) ?? `POST /upgrade returned status ${status}`)
}

/** The response, or nothing when it is too long. */
async function readStart(body: Readable): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    // Leaving the loop destroys the body.
    if (bytes > MAX_RESPONSE_BYTES) return ''
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
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
