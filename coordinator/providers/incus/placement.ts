// Where in a cluster the instances of a region are.
import type { IncusClient } from './client.ts'
import type { Server } from './server.ts'

export class Placement {
  readonly #client: IncusClient
  /** A member, or `@` and a group. null: Incus chooses. */
  readonly target: string | null

  constructor(client: IncusClient, target: string | null) {
    this.#client = client
    this.target = target
  }

  /** The query of a request that creates an instance. @param preferred the member that has the source, if there is one */
  getQuery({ isClustered }: Server, preferred: string | null = null): { target?: string } {
    const target = this.target ?? preferred
    return isClustered && target !== null ? { target } : {}
  }

  /** Whether the member belongs to the target. */
  async includes(location: string, { isClustered }: Server): Promise<boolean> {
    if (!isClustered || this.target === null) return true
    if (!this.target.startsWith('@')) return location === this.target
    const group = await this.#client.get<{ members: string[] | null }>(
      `/cluster/groups/${encodeURIComponent(this.target.slice(1))}`,
    )
    return group.members?.includes(location) ?? false
  }
}
