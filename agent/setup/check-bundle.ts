// Verifies a downloaded bundle: its signature, its digest, and the key that this machine accepts.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import type { AgentBuild } from '../../shared/agent-build.ts'
import { verifyAgentBuild } from '../../shared/agent-bundle.ts'
import { SetupError } from './setup-error.ts'

/** @throws SetupError */
export async function checkBundle(bundle: AgentBuild, archive: string, publicKey: string): Promise<void> {
  if (!verifyAgentBuild(bundle, publicKey))
    throw new SetupError(
      'The signature of the agent bundle does not match the key in install.sh. The bundle was changed on its way, or the script is of another coordinator. Download install.sh from the coordinator again.',
    )
  const hash = createHash('sha256')
  let size = 0
  await pipeline(createReadStream(archive), async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) {
      hash.update(chunk)
      size += chunk.length
    }
  })
  if (size !== bundle.size || hash.digest('hex') !== bundle.sha256)
    throw new SetupError(
      'The downloaded agent bundle differs from the bundle that the coordinator has signed. It was changed on its way, or the download is damaged. Run the installer again.',
    )
}

/** @throws SetupError when this machine belongs to a coordinator with another key */
export function checkPinnedKey(pinned: string | null, publicKey: string, prefix: string): void {
  if (pinned === null || pinned === publicKey) return
  throw new SetupError(
    `The agent in ${prefix} belongs to a coordinator with another key, so this coordinator cannot change it. To join this coordinator, run the installer with --uninstall first.`,
  )
}
