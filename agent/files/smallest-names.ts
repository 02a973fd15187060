// Collects the first names of a directory in the order of their bytes. Pure.

/** Keeps less than twice as many names as requested, independent of how many are added. */
export class SmallestNames {
  readonly #count: number
  readonly #after: Buffer | null
  #names: Buffer[] = []
  /** With `count` smaller names, this one and larger ones are not needed. */
  #limit: Buffer | null = null

  /** @param after only larger names are collected; null: all */
  constructor(count: number, after: Buffer | null) {
    this.#count = count
    this.#after = after
  }

  /** The number of names in memory. */
  get size(): number {
    return this.#names.length
  }

  add(name: Buffer): void {
    if (this.#after !== null && Buffer.compare(name, this.#after) <= 0) return
    if (this.#limit !== null && Buffer.compare(name, this.#limit) >= 0) return
    this.#names.push(name)
    if (this.#names.length >= 2 * this.#count) this.#trim()
  }

  toSorted(): readonly Buffer[] {
    this.#trim()
    return this.#names
  }

  #trim(): void {
    this.#names = this.#names.sort(Buffer.compare).slice(0, this.#count)
    if (this.#names.length === this.#count) this.#limit = this.#names.at(-1) ?? null
  }
}
