// What an installation needs from the command line and from its surroundings.
import type { AgentBuild } from '../../shared/agent-build.ts'
import type { SelectProxy } from '../tunnel/proxy.ts'
import type { SetupOptions } from './options.ts'
import { SetupError } from './setup-error.ts'

export type InstallDeps = {
  selectProxy: SelectProxy
  env: Readonly<Record<string, string | undefined>>
  print(line: string): void
  /** Aborts with a SetupError when the installer receives a signal. */
  signal: AbortSignal
}

/** SetupOptions with what install.sh always passes. */
export type Settings = SetupOptions & { url: string; publicKey: string; bundle: AgentBuild }

/** @throws SetupError */
export function readSettings(options: SetupOptions): Settings {
  const { url, publicKey, bundle } = options
  if (url === null || publicKey === null || bundle === null)
    throw new SetupError('The settings of the coordinator are missing. Download install.sh again.')
  return { ...options, url, publicKey, bundle }
}
