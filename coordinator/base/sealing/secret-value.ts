// A value that must not appear in logs, responses or errors.
import { inspect } from 'node:util'

const SHOWN = '[secret]'

/** Only reveal() returns the value: logging, JSON and string conversion of the object show a fixed text. */
export class SecretValue {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return SHOWN
  }

  toJSON(): string {
    return SHOWN
  }

  [Symbol.toPrimitive](): string {
    return SHOWN
  }

  [inspect.custom](): string {
    return SHOWN
  }
}
