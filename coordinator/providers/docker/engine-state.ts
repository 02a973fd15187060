// The latest information about an engine, which may be down.
import type { Engine } from './engine.ts'
import { type EngineInfo, readEngineInfo } from './engine-info.ts'

export class EngineState {
  readonly #engine: Engine
  readonly #isLocal: boolean
  #latest: EngineInfo | undefined
  #problem: string | undefined

  constructor(engine: Engine, isLocal: boolean) {
    this.#engine = engine
    this.#isLocal = isLocal
  }

  /** undefined: the engine has not answered yet. */
  get latest(): EngineInfo | undefined {
    return this.#latest
  }

  /** Why the latest read failed. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Reads the information. Throws like EngineHttp.json(). */
  async refresh(): Promise<EngineInfo> {
    try {
      this.#latest = await readEngineInfo(this.#engine, this.#isLocal)
      this.#problem = undefined
      return this.#latest
    } catch (error) {
      this.#problem = (error as Error).message
      throw error
    }
  }

  /** Returns the information that is known, else reads it. */
  async read(): Promise<EngineInfo> {
    return this.#latest ?? (await this.refresh())
  }
}
