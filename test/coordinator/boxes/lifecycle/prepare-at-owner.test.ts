// A box is prepared by the coordinator that has the tunnel of its agent, and by no other.
import t from 'tap'
import type { z } from 'zod'
import { prepareAtOwner } from '../../../../coordinator/boxes/lifecycle/prepare-at-owner.ts'
import type { Peers } from '../../../../coordinator/replicas/peers.ts'

const BOX = 'box'
const { signal } = new AbortController()

type Serve = (input: unknown, signal: AbortSignal) => Promise<unknown>

/** Coordinators that call each other, of which one has the tunnel of the box. */
function createReplicas() {
  const serving = new Map<string, Serve>()
  const prepared: string[] = []
  const state = { owner: 'a' as string | null, known: 'a' as string | null }
  const create = (id: string) => {
    const peers: Pick<Peers, 'handle' | 'call'> = {
      handle: (_operation, schema, serve) => {
        serving.set(id, (input, ...rest) => serve(schema.parse(input), ...rest))
      },
      async call<O>(
        replicaId: string,
        _operation: string,
        input: unknown,
        options: { schema: z.ZodType<O> },
      ) {
        const output = await serving.get(replicaId)?.(input, signal)
        return options.schema.parse(output ?? null)
      },
    }
    return prepareAtOwner({
      peers,
      tunnels: { local: () => (state.owner === id ? ({} as never) : undefined) },
      agentConnections: {
        owner: () => (state.known === null || state.known === id ? undefined : { replicaId: state.known }),
      },
      prepareBox: async (boxId) => void prepared.push(`${boxId} at ${id}`),
    })
  }
  return { state, prepared, a: create('a'), b: create('b') }
}

t.test('the coordinator with the tunnel prepares the box', async (t) => {
  const { a, b, prepared } = createReplicas()
  await a(BOX, signal)
  await b(BOX, signal)
  t.same(prepared, ['box at a', 'box at a'])
})

t.test('a box without a tunnel, and one that has moved, is not prepared: the step is repeated', async (t) => {
  const { a, b, prepared, state } = createReplicas()
  state.owner = 'b'
  await t.rejects(a(BOX, signal), { code: 'box_unreachable' })
  state.known = 'a'
  await t.rejects(b(BOX, signal), { code: 'box_unreachable' }, 'it asks the earlier owner')
  state.known = null
  state.owner = null
  await t.rejects(a(BOX, signal), { code: 'box_unreachable' })
  t.same(prepared, [])
})

t.test('without other coordinators, the function is unchanged', async (t) => {
  const prepareBox = async () => undefined
  const options = { tunnels: { local: () => undefined }, agentConnections: { owner: () => undefined } }
  t.equal(prepareAtOwner({ peers: null, ...options, prepareBox }), prepareBox)
})
