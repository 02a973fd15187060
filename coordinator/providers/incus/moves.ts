// Moves instances between the members of a cluster: copy, delete, rename. Exactly one of the instance and its copy is valid at each
// moment, and an interrupted move is finished or undone.
//
// The move of Incus itself is not used: when the target fails during the transfer, Incus 6.0 keeps a record of the volume on the
// target, which no request removes and which makes every later move to this member fail. A copy has a new name in each attempt.
import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { BoxQueue } from '../parts/box-queue.ts'
import type { Instance } from './api.ts'
import { type Instances, isComplete } from './instances.ts'
import { NO_DEVICES } from './machine.ts'
import { LABELS } from './names.ts'

const COPY_SUFFIX = /-[0-9a-f]{6}$/

/**
 * A copy is valid when it has the label `replaces` and the instance with that name is absent or incomplete. So a copy replaces the
 * instance at the moment at which that becomes incomplete.
 */
export class Moves {
  readonly #instances: Instances
  readonly #log: Pick<Logger, 'warn'>
  /** Two regions may work on the same box. */
  readonly #queue = new BoxQueue()

  constructor(instances: Instances, log: Pick<Logger, 'warn'>) {
    this.#instances = instances
    this.#log = log
  }

  /**
   * Moves the instance, which must be complete and stopped, with its snapshots.
   * @param query selects the member @param config labels that the instance gets
   */
  move(
    instance: Instance,
    options: { query: { target?: string }; config: Record<string, string> },
  ): Promise<void> {
    const copy = `${instance.name}-${randomBytes(3).toString('hex')}`
    return this.#queue.run(instance.name, () =>
      this.#instances.whileMoving([instance.name, copy], () => this.#move(instance, copy, options)),
    )
  }

  /** Finishes the interrupted move of an instance that is absent or incomplete, and returns whether there was one. */
  finish(name: string): Promise<boolean> {
    return this.#queue.run(name, () => this.#finish(name))
  }

  /** Finishes or undoes all interrupted moves between members that can be reached. */
  async finishAll(): Promise<void> {
    for (const { name, config } of await this.#instances.list({ [LABELS.role]: 'box' })) {
      const replaced = config[LABELS.replaces]
      if (!replaced || this.#instances.isMoving(replaced)) continue
      await this.#queue
        .run(replaced, async () => {
          await this.#finish(replaced)
          if (name !== replaced) await this.#instances.remove(name)
        })
        .catch((err: unknown) => this.#log.warn({ err, name }, 'failed to finish the move of a box'))
    }
  }

  /** Removes the instance and its copies. */
  remove(name: string): Promise<void> {
    return this.#queue.run(name, async () => {
      for (const copy of await this.#listCopies(name)) await this.#instances.remove(copy)
      await this.#instances.remove(name)
    })
  }

  async #move(
    { name, architecture, config: ownConfig, devices }: Instance,
    copy: string,
    { query, config }: { query: { target?: string }; config: Record<string, string> },
  ): Promise<void> {
    const instances = this.#instances
    await this.#removeCopies(name)
    await instances.create({
      name: copy,
      source: { type: 'copy', source: name },
      query,
      architecture,
      // A copy between members inherits nothing.
      config: { ...filterMovable(ownConfig), ...config },
      devices: { ...devices, ...NO_DEVICES },
    })
    await instances.patch(copy, { config: { [LABELS.replaces]: name } })
    await instances.patch(name, { config: { [LABELS.complete]: '' } })
    await this.#replace(name, copy)
    // The target may have returned only for this attempt.
    await this.#removeCopies(name)
  }

  /** Removes what attempts have left that failed together with the target. */
  async #removeCopies(name: string): Promise<void> {
    for (const copy of await this.#listCopies(name))
      await this.#instances
        .remove(copy)
        .catch((err: unknown) => this.#log.warn({ err, copy }, 'a copy of an interrupted move remains'))
  }

  async #finish(name: string): Promise<boolean> {
    const instance = await this.#instances.load(name)
    if (instance !== null && isComplete(instance)) return true
    if (instance?.config[LABELS.replaces] === name) {
      await this.#complete(name)
      return true
    }
    for (const copyName of await this.#listCopies(name)) {
      const copy = await this.#instances.load(copyName)
      if (copy?.config[LABELS.replaces] !== name) continue
      await this.#replace(name, copyName)
      return true
    }
    return false
  }

  async #replace(name: string, copy: string): Promise<void> {
    await this.#instances.remove(name)
    await this.#instances.rename(copy, name)
    await this.#complete(name)
  }

  #complete(name: string): Promise<void> {
    return this.#instances.complete(name, { config: { [LABELS.replaces]: '' } })
  }

  /** Includes those on members that cannot be reached. */
  async #listCopies(name: string): Promise<string[]> {
    const names = await this.#instances.listNames()
    return names.filter((other) => COPY_SUFFIX.test(other) && other.replace(COPY_SUFFIX, '') === name)
  }
}

/** What Incus writes for an instance is different on another member. */
const filterMovable = (config: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(config).filter(([key]) => !key.startsWith('volatile.') || key === 'volatile.base_image'),
  )
