// The version that the agent reports: VERSION and the build of the directory from which it runs.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatAgentVersion } from '../shared/protocol.ts'
import { VERSION } from '../shared/version.ts'

/** null when the agent runs from its sources. */
export const buildId: string | null = readBuildId()

export const agentVersion: string = buildId === null ? VERSION : formatAgentVersion(buildId)

function readBuildId(): string | null {
  try {
    return readFileSync(join(import.meta.dirname, 'build-id'), 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
