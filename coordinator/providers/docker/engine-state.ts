// The latest information about an engine, which may be down.
import { describeAddress } from '../engine-http/address.ts'
import { PermanentProviderError } from '../provider.ts'
import type { Engine } from './engine.ts'
import { type EngineInfo, readEngineInfo } from './engine-info.ts'
import type { EngineProtections } from './engine-protections.ts'

export class EngineState {
  readonly #engine: Engine
  readonly #isLocal: boolean
  readonly #protections: EngineProtections
  #latest: EngineInfo | undefined
  #problem: string | undefined

  constructor(engine: Engine, isLocal: boolean, protections: EngineProtections) {
    this.#engine = engine
    this.#isLocal = isLocal
    this.#protections = protections
  }

  /** undefined: the engine has not answered yet, or is refused. */
  get latest(): EngineInfo | undefined {
    return this.#latest
  }

  /** Sentences that say why the latest read failed, and when boxes start again. */
  get problem(): string | undefined {
    return this.#problem
  }

  /**
   * Reads the information. Throws like EngineHttp.json(), and PermanentProviderError when the engine protects boxes less than
   * before.
   */
  async refresh(): Promise<EngineInfo> {
    const { http } = this.#engine
    try {
      const info = await readEngineInfo(this.#engine, this.#isLocal)
      await this.#protections.update(http.name, describeAddress(http.address), info)
      this.#latest = info
      this.#problem = undefined
      return info
    } catch (error) {
      const { message } = error as Error
      const isRefused = error instanceof PermanentProviderError
      if (isRefused) this.#latest = undefined
      this.#problem = isRefused ? message : `${message} Its boxes start when it answers.`
      throw error
    }
  }

  /** Returns the information that is known, else reads it. */
  async read(): Promise<EngineInfo> {
    return this.#latest ?? (await this.refresh())
  }
}
