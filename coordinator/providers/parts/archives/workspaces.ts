// Decides when unused chunks of a workspace are removed: never while the workspace is in use.

/** removed: the chunks of removed archives. all: also what failed or interrupted captures stored. */
export type Collect = (workspaceId: string, scope: 'all' | 'removed') => Promise<void>

export type WorkspacesOptions = {
  collect: Collect
  /** Whether an earlier coordinator left something that has to be removed. */
  hasGarbage(workspaceId: string): boolean
  /** Receives the failure of a collection that no call waits for. The next use of the workspace repeats it. */
  onError(error: unknown): void
}

export type Workspaces = ReturnType<typeof createWorkspaces>

type Workspace = {
  users: number
  /** What the next collection removes. */
  garbage: 'all' | 'removed' | null
  collecting: Promise<void> | null
}

export function createWorkspaces({ collect, hasGarbage, onError }: WorkspacesOptions) {
  const workspaces = new Map<string, Workspace>()
  let holds = 0

  function get(workspaceId: string): Workspace {
    const existing = workspaces.get(workspaceId)
    if (existing !== undefined) return existing
    const garbage = hasGarbage(workspaceId) ? 'all' : null
    const workspace: Workspace = { users: 0, garbage, collecting: null }
    workspaces.set(workspaceId, workspace)
    return workspace
  }

  const isCollectable = ({ garbage, users }: Workspace): boolean =>
    garbage !== null && users === 0 && holds === 0

  async function collectGarbage(workspaceId: string, workspace: Workspace): Promise<void> {
    while (workspace.collecting !== null || isCollectable(workspace)) {
      workspace.collecting ??= collectOnce(workspaceId, workspace)
      await workspace.collecting
    }
  }

  async function collectOnce(workspaceId: string, workspace: Workspace): Promise<void> {
    const scope = workspace.garbage ?? 'removed'
    workspace.garbage = null
    try {
      await collect(workspaceId, scope)
    } catch (error) {
      workspace.garbage = 'all'
      throw error
    } finally {
      workspace.collecting = null
    }
  }

  /** Prevents the removal of chunks until the returned function is called. Rejects when a collection fails. */
  async function enter(workspaceId: string): Promise<() => void> {
    const workspace = get(workspaceId)
    // Another call may begin a collection before this one continues.
    do await collectGarbage(workspaceId, workspace)
    while (workspace.collecting !== null)
    workspace.users++
    return () => {
      workspace.users--
      collectGarbage(workspaceId, workspace).catch(onError)
    }
  }

  return {
    enter,

    async use<T>(workspaceId: string, work: () => Promise<T>): Promise<T> {
      const leave = await enter(workspaceId)
      try {
        return await work()
      } finally {
        leave()
      }
    },

    /** Prevents the removal of chunks of all workspaces until the returned function is called. */
    async hold(): Promise<() => void> {
      holds++
      await Promise.allSettled([...workspaces.values()].map(({ collecting }) => collecting))
      let isHeld = true
      return () => {
        if (!isHeld) return
        isHeld = false
        holds--
        for (const [workspaceId, workspace] of workspaces)
          collectGarbage(workspaceId, workspace).catch(onError)
      }
    },

    /** Waits for the collection. While the workspace is in use or held, the collection follows. */
    async addGarbage(workspaceId: string, scope: 'all' | 'removed'): Promise<void> {
      const workspace = get(workspaceId)
      workspace.garbage = workspace.garbage === 'all' ? 'all' : scope
      await collectGarbage(workspaceId, workspace)
    },
  }
}
