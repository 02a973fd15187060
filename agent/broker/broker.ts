// The box's end of the broker of secrets: the listener, the trusted certificates, and the variables by which programs find
// both. The coordinator ends the TLS connections to the hosts of secrets, and substitutes the values.
import { mkdir } from 'node:fs/promises'
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import type { AgentBroker } from '../../shared/api/agent-variables.ts'
import type { DialerOptions } from '../tunnel/websocket-dialer.ts'
import { createCredential } from './credential.ts'
import { type Listener, openListener } from './listener.ts'
import { createPeerCheck, permitAll } from './peer-check.ts'
import { createSecretDialer } from './secret-dialer.ts'
import { type SelfTestResult, testBroker } from './self-test.ts'
import { type BrokerSettings, createSettingsFile } from './settings-file.ts'
import { getTrustFiles, writeTrustFiles } from './trust-files.ts'
import { createVariables } from './variables.ts'

export type BrokerOptions = DialerOptions & {
  /** The state directory of the broker. Processes read certificates there by the absolute path. */
  dir: string
  /** With BOXWOOD_NETWORK=own, all processes of the network are those of the box. Otherwise the user of each peer is checked. */
  env: Readonly<Record<string, string | undefined>>
  log: Logger
  /** How long connections wait for a coordinator that does not listen. Default: 10 s. */
  retryMs?: number
}

export class Broker {
  readonly #options: BrokerOptions
  readonly #dialer: ReturnType<typeof createSecretDialer>
  readonly #file: ReturnType<typeof createSettingsFile>
  /** One change at a time. */
  readonly #exclusive = pLimit(1)
  #settings: BrokerSettings | null
  #listener: Listener | null = null

  private constructor(options: BrokerOptions) {
    this.#options = options
    this.#dialer = createSecretDialer(options)
    this.#file = createSettingsFile(options.dir)
    this.#settings = this.#file.read()
  }

  /** Opens the listener again when an earlier agent had one: processes that outlive an agent continue to use it. */
  static async open(options: BrokerOptions): Promise<Broker> {
    const broker = new Broker(options)
    if (broker.#settings !== null)
      await broker
        .#openListener()
        .catch((err: unknown) => options.log.error({ err }, 'failed to open the proxy of the box'))
    return broker
  }

  /** null: the listener is not open. */
  readonly readPort = (): number | null => this.#listener?.port ?? null

  /** The variables of the processes that start now; empty: no secret is mounted. */
  readonly readVariables = (): Record<string, string> =>
    this.#listener === null || this.#settings?.hosts == null
      ? {}
      : createVariables(this.#settings, getTrustFiles(this.#options.dir))

  /**
   * Never rejects.
   * @param content null: no secret is mounted. The listener stays open for the processes that have its variables.
   * @returns null: no secret is mounted
   */
  update(content: AgentBroker | null): Promise<SelfTestResult | null> {
    return this.#exclusive(() =>
      this.#apply(content).catch((err: unknown): SelfTestResult => {
        this.#options.log.error({ err }, 'failed to prepare the proxy of the box')
        const reason = err instanceof Error ? err.message : String(err)
        return { state: 'failed', message: `The agent cannot open its proxy: ${reason}`.slice(0, 1000) }
      }),
    )
  }

  async #apply(content: AgentBroker | null): Promise<SelfTestResult | null> {
    if (content === null) {
      if (this.#settings !== null) await this.#store({ ...this.#settings, hosts: null })
      return null
    }
    const { certificate, hosts } = content
    const { dir } = this.#options
    // Other users of a box with an image read the certificates too. The settings have a private mode.
    await mkdir(dir, { recursive: true, mode: 0o711 })
    await writeTrustFiles(dir, certificate)
    const { port, credential } = this.#settings ?? { port: 0, credential: createCredential() }
    this.#settings = { port, credential, certificate, hosts }
    if (this.#listener === null) await this.#openListener()
    await this.#store(this.#settings)
    return testBroker(this.#settings, certificate)
  }

  async #store(settings: BrokerSettings): Promise<void> {
    this.#settings = settings
    await this.#file.write(settings)
  }

  async #openListener(): Promise<void> {
    const settings = this.#settings
    if (settings === null) return
    const { env, log, retryMs } = this.#options
    const isPermitted =
      env.BOXWOOD_NETWORK === 'own' ? permitAll : createPeerCheck({ uids: [0, process.getuid?.() ?? 0] })
    const open = (port: number, credential: string) =>
      openListener({
        ...{ port, credential, dialer: this.#dialer, isPermitted, log, retryMs },
        readPatterns: () => this.#settings?.hosts ?? [],
      })
    try {
      this.#listener = await open(settings.port, settings.credential)
    } catch (error) {
      if (!isPortTaken(error)) throw error
      // The program on the port gets the requests of running processes, with the credential.
      const credential = createCredential()
      this.#listener = await open(0, credential)
      this.#settings = { ...settings, credential }
      const { port } = this.#listener
      log.warn(
        { port: settings.port, newPort: port },
        'another program has the port of the proxy of the box: processes that were started before must be restarted to use secrets',
      )
    }
    const { port } = this.#listener
    if (port !== settings.port) await this.#store({ ...(this.#settings ?? settings), port })
  }

  async close(): Promise<void> {
    // A test request that is in progress fails.
    await this.#listener?.close()
    this.#dialer.close()
  }
}

const isPortTaken = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
