// The upgrades of the agent: the state of this build, and on machines the installation of other builds.
import type { Logger } from 'pino'
import { FAILED_BUILD_HEADER, PLATFORM_HEADER } from '../../shared/protocol.ts'
import type { SelectProxy } from '../tunnel/proxy.ts'
import { buildId } from '../version.ts'
import { type BuildState, createBuildState } from './build-state.ts'
import { type Builds, createBuilds } from './builds.ts'
import { createArchiveFetcher } from './fetch-archive.ts'

export type UpgradesOptions = {
  stateDir: string
  /** The directory with the builds of the agent; null on a box whose builds the coordinator installs. */
  prefix: string | null
  readUrl(): Promise<string>
  selectProxy: SelectProxy
  log: Logger
}

export type Upgrades = {
  buildState: BuildState
  /** null: the coordinator installs the builds of this box. */
  builds: Builds | null
  /** Returns the headers of the tunnel for the coordinator's choice of a build. */
  readHeaders(): Promise<Record<string, string>>
  /** Records that this build works. To be called when the coordinator uses its connection. */
  confirmBuild(): void
  close(): Promise<void>
}

export function createUpgrades({ stateDir, prefix, readUrl, selectProxy, log }: UpgradesOptions): Upgrades {
  const platform = `${process.platform}-${process.arch}`
  const buildState = createBuildState(stateDir, buildId)
  const fetchArchive = createArchiveFetcher(readUrl, selectProxy)
  const builds =
    prefix === null || buildId === null
      ? null
      : createBuilds({ prefix, buildId, platform, fetchArchive, log })
  let isConfirmed = false

  async function confirm(): Promise<void> {
    await buildState.recordConnected()
    await builds?.prune()
  }

  return {
    buildState,
    builds,
    async readHeaders() {
      const failure = await buildState.readFailure()
      return {
        ...(failure !== null && { [FAILED_BUILD_HEADER]: failure }),
        ...(builds !== null && { [PLATFORM_HEADER]: platform }),
      }
    },
    confirmBuild() {
      if (isConfirmed) return
      isConfirmed = true
      confirm().catch((err: unknown) => {
        // The next connection tries again: the disk may be full.
        isConfirmed = false
        log.warn({ err }, 'failed to record that this build has connected')
      })
    },
    async close() {
      await builds?.close()
    },
  }
}
