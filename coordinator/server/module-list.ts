// The modules of a coordinator: creates them in order, and starts, drains and closes them.
import type { CleanupStack } from '../base/cleanup-stack.ts'
import type { Trx } from '../db/transaction.ts'
import type { Module, ModuleRegistry, RemovedMember, SealedColumn, WorkspaceTable } from '../http/module.ts'

export class ModuleList implements ModuleRegistry {
  readonly #modules: Module[] = []

  get all(): readonly Module[] {
    return this.#modules
  }

  push(module: Module): void {
    this.#modules.push(module)
  }

  /** The elements of a field of all modules, in the order of the modules. */
  collect<T>(read: (module: Module) => readonly T[] | undefined): T[] {
    return this.#modules.flatMap((module) => read(module) ?? [])
  }

  readonly listWorkspaceTables = (): readonly WorkspaceTable[] =>
    this.collect(({ workspaceTables }) => workspaceTables)

  readonly listSealedColumns = (): readonly SealedColumn[] =>
    this.collect(({ sealedColumns }) => sealedColumns)

  readonly deleteOfBox = async (trx: Trx, boxId: string): Promise<void> => {
    for (const { deleteOfBox } of this.#modules.toReversed()) await deleteOfBox?.(trx, boxId)
  }

  readonly restrictBox = async (trx: Trx, boxId: string): Promise<void> => {
    for (const { restrictBox } of this.#modules) await restrictBox?.(trx, boxId)
  }

  readonly removeMember = async (trx: Trx, member: RemovedMember): Promise<void> => {
    for (const { removeMember } of this.#modules) await removeMember?.(trx, member)
  }

  readonly prepareBox = async (boxId: string, signal: AbortSignal): Promise<void> => {
    for (const { prepareBox } of this.#modules) await prepareBox?.(boxId, signal)
  }

  /** The cleanup closes the modules in the reverse order. */
  addTo(cleanup: CleanupStack): void {
    for (const { close } of this.#modules) if (close) cleanup.add(close.name, close.run, close.timeoutMs)
  }

  async prepare(): Promise<void> {
    for (const { prepare } of this.#modules) await prepare?.()
  }

  async start(): Promise<void> {
    for (const { start } of this.#modules) await start?.()
  }

  async leave(): Promise<void> {
    for (const { leave } of this.#modules.toReversed()) await leave?.()
  }

  beginStop(): void {
    for (const { beginStop } of this.#modules.toReversed()) beginStop?.()
  }

  async drain(): Promise<void> {
    for (const { drain } of this.#modules.toReversed()) await drain?.()
  }
}

/**
 * Adds modules one after the other. Each is created from the context: what the coordinator has from the start, and the services
 * of the modules before it. A module that needs a service of a later one is a type error.
 */
export class ModuleChain<Context extends { modules: ModuleList }> {
  readonly context: Context

  constructor(context: Context) {
    this.context = context
  }

  add<Services = unknown>(
    create: (context: Context) => Module & { readonly services?: Services },
  ): ModuleChain<Context & Services> {
    const module = create(this.context)
    this.context.modules.push(module)
    return new ModuleChain({ ...this.context, ...module.services } as Context & Services)
  }
}
