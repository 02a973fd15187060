// Chunks of a workspace are never removed while it is in use, whatever the order of the calls.
import t from 'tap'
import { createWorkspaces } from '../../../../../coordinator/providers/parts/archives/workspaces.ts'

const waitMicrotasks = async (count: number) => {
  for (let i = 0; i < count; i++) await null
}

t.test('no collection runs while a workspace is in use', async (t) => {
  // The second collection is requested at each possible moment after the first one.
  for (let delay = 0; delay < 20; delay++) {
    const first = Promise.withResolvers<void>()
    const collections: Promise<void>[] = [first.promise]
    let isCollecting = false
    let users = 0
    const problems: string[] = []
    const workspaces = createWorkspaces({
      async collect() {
        if (users > 0) problems.push('a collection began during a use')
        isCollecting = true
        await (collections.shift() ?? waitMicrotasks(10))
        isCollecting = false
      },
      hasGarbage: () => true,
      onError: (error) => problems.push(String(error)),
    })
    const use = workspaces.use('ws_1', async () => {
      users++
      if (isCollecting) problems.push('a use began during a collection')
      await waitMicrotasks(30)
      users--
    })
    first.resolve()
    await waitMicrotasks(delay)
    await Promise.all([workspaces.addGarbage('ws_1', 'removed'), use])
    t.same(problems, [], `after ${delay} microtasks`)
  }
})
