// The version that the agent reports: AGENT_VERSION and the build of the runtime directory from which it runs.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AGENT_VERSION, formatAgentVersion } from '../shared/protocol.ts'

/** Without a build when the agent runs from its sources. */
export const agentVersion: string = readVersion()

function readVersion(): string {
  try {
    return formatAgentVersion(readFileSync(join(import.meta.dirname, 'build-id'), 'utf8').trim())
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return AGENT_VERSION
    throw error
  }
}
