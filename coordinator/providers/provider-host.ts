// What the providers of all regions of one kind have in common, such as the connection to the engine.

import type { Logger } from 'pino'
import type { Region } from '../../shared/tiers.ts'
import type { Limits } from '../base/limits.ts'
import type { BaseSettings } from '../base/settings.ts'
import type { HttpSettings } from '../http/settings.ts'
import type { Provider } from './provider.ts'
import type { ProviderSettings } from './settings.ts'

export type ProviderHost = {
  /**
   * Opens the provider of a region. An engine that does not answer is no error: its calls fail until it does.
   * @param target see RegionProvider
   */
  open(region: Region, target: string | null): Promise<Provider>
  /** Closes what the providers share, after the providers. */
  close(): Promise<void>
}

/** The settings that providers use. */
export type ProviderConfig = ProviderSettings &
  Pick<BaseSettings, 'dataDir'> &
  Pick<HttpSettings, 'agentUrl'> & { limits: Limits }

export type ProviderContext = {
  config: ProviderConfig
  log: Pick<Logger, 'debug' | 'info' | 'warn'>
  projectRoot: string
  /** In the labels of what the coordinators of the database create in engines. */
  deploymentId: string
  /** The URL at which agents reach the coordinator, an origin. Nothing outside this machine may reach it unless it is config.agentUrl. */
  coordinatorUrl: string
  /** The directory of the coordinator's socket for agents (http/agent-socket.ts); null: there is none. */
  agentSocketDir: string | null
  /** Why there is no socket; null: there is one. */
  agentSocketProblem: string | null
  /** Environment variables that configure the agents. */
  agentSettings: Readonly<Record<string, string>>
}

/** Throws PermanentProviderError when the configuration cannot work on this machine. */
export type OpenProviderHost = (context: ProviderContext) => Promise<ProviderHost>
