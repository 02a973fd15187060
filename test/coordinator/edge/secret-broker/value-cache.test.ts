// Values and matchers that requests share: what is created, how long it is kept, and how much of it there may be.
import t from 'tap'
import { SecretValue } from '../../../../coordinator/base/sealing/secret-value.ts'
import { Scrubber } from '../../../../coordinator/edge/secret-broker/scrub/scrubber.ts'
import {
  MAX_UNUSED_MS,
  MAX_WORKSPACE_BYTES,
  ValueCache,
} from '../../../../coordinator/edge/secret-broker/value-cache.ts'
import type { BrokeredSecret } from '../../../../coordinator/secrets/types.ts'

const KiB = 1024

function createCache() {
  const clock = { ms: 0, now: () => clock.ms }
  const cache = new ValueCache(clock)
  let opened = 0
  const createSecret = (secretId: string, value: string | null): BrokeredSecret => ({
    secretId,
    name: secretId.toUpperCase(),
    placeholder: `dcpsec_${secretId}`,
    in: ['header'],
    version: `v1.${value}`,
    open() {
      opened += 1
      return value === null ? null : new SecretValue(value)
    },
  })
  const acquire = (values: Record<string, string | null>, workspaceId = 'ws_1') =>
    cache.acquire({
      workspaceId,
      secrets: Object.entries(values).map(([id, value]) => createSecret(id, value)),
    })
  return { clock, cache, acquire, getOpened: () => opened }
}

const mask = ({ matcher }: ReturnType<ValueCache['acquire']>, text: string): string => {
  const scrubber = new Scrubber(matcher === null ? [] : [matcher])
  return [scrubber.push(Buffer.from(text)), scrubber.flush()].join('')
}
const large = (char: string) => char.repeat(16 * KiB)

t.test('the same secrets have one matcher, whatever their order is', async (t) => {
  const { cache, acquire, getOpened } = createCache()
  const first = acquire({ a: 'value-of-a', b: 'value-of-b' })
  const second = acquire({ b: 'value-of-b', a: 'value-of-a' })
  t.equal(second.matcher, first.matcher)
  t.same([getOpened(), cache.size], [2, 1])
  t.same(
    second.secrets.map(({ secretId, value }) => [secretId, value?.reveal()]),
    [
      ['b', 'value-of-b'],
      ['a', 'value-of-a'],
    ],
  )
  t.equal(mask(second, 'value-of-a value-of-b'), '********** **********')
})

t.test('a new value, another secret and another workspace have a matcher of their own', async (t) => {
  const { acquire } = createCache()
  const first = acquire({ a: 'value-of-a' })
  for (const [name, other] of Object.entries({
    value: acquire({ a: 'new-value-of-a' }),
    secret: acquire({ a: 'value-of-a', b: null }),
    id: acquire({ c: 'value-of-a' }),
    workspace: acquire({ a: 'value-of-a' }, 'ws_2'),
  }))
    t.not(other.matcher, first.matcher, name)
  t.equal(mask(acquire({ a: 'new-value-of-a' }), '<new-value-of-a>'), '<**************>')
})

t.test('other parts of requests have a matcher for the texts that are sent there', async (t) => {
  const { cache } = createCache()
  const value = 'say "hello"'
  const acquireIn = (locations: BrokeredSecret['in']) =>
    cache.acquire({
      workspaceId: 'ws_1',
      secrets: [
        {
          ...{ secretId: 'a', name: 'A', placeholder: 'dcpsec_a', version: 'v1.a' },
          in: locations,
          open: () => new SecretValue(value),
        },
      ],
    })
  const body = JSON.stringify(JSON.stringify({ value }))
  t.notMatch(mask(acquireIn(['header']), body), '***')
  t.match(mask(acquireIn(['body']), body), /value\\":\\"\*+\\"/)
  t.match(mask(acquireIn(['query']), encodeURIComponent(encodeURIComponent(value))), /^\*+$/)
})

t.test('short and damaged values need no matcher', async (t) => {
  const { acquire } = createCache()
  const { matcher, secrets } = acquire({ a: '1234567', b: null })
  t.equal(matcher, null)
  t.match(secrets, [{ secretId: 'a' }, { secretId: 'b', value: null }])
})

t.test(
  '64 KiB of keys are admitted, and values with more forms are refused without being opened again',
  async (t) => {
    const { acquire, getOpened } = createCache()
    const { matcher } = acquire({ a: large('a'), b: large('b'), c: large('c'), d: large('d') })
    t.ok((matcher?.size ?? 0) < 5 * KiB * KiB, `${matcher?.size} bytes`)
    const tooLarge = Object.fromEntries(['a', 'b', 'c', 'd'].map((id) => [id, `${id}ÿé漢<&>/ `.repeat(1000)]))
    for (let count = 0; count < 3; count += 1)
      t.throws(() => acquire(tooLarge), { code: 'headers_too_large' })
    t.ok(getOpened() <= 8, `${getOpened()} values were opened`)
  },
)

t.test('a workspace may create a limited number of bytes in a time', async (t) => {
  const { clock, acquire } = createCache()
  const createMany = () => {
    for (let count = 0; count < 100; count += 1) acquire({ a: large('a') + clock.ms + count }).release()
  }
  t.throws(createMany, { code: 'too_many_requests' })
  t.doesNotThrow(() => acquire({ a: 'value-of-a' }, 'ws_2'), 'another workspace')
  clock.ms += 60_000
  t.doesNotThrow(() => acquire({ a: 'value-of-a' }))
})

t.test('responses that are not complete hold a limited number of bytes', async (t) => {
  const { clock, acquire } = createCache()
  const held: ReturnType<typeof acquire>[] = []
  const acquireMany = () => {
    for (let count = 0; count < 100; count += 1) {
      clock.ms += 60_000
      held.push(acquire({ a: large(String(count % 10)) + count }))
    }
  }
  t.throws(acquireMany, { code: 'too_many_requests' })
  const bytes = held.reduce((sum, { matcher }) => sum + (matcher?.size ?? 0), 0)
  t.ok(bytes < MAX_WORKSPACE_BYTES && bytes > MAX_WORKSPACE_BYTES / 2, `${bytes} bytes`)
  clock.ms += 60_000
  t.throws(() => acquire({ a: large('x') }), { code: 'too_many_requests' })
  t.doesNotThrow(() => acquire({ a: large('x') }, 'ws_2'), 'another workspace')
  held[0]?.release()
  held[0]?.release()
  t.doesNotThrow(() => acquire({ a: large('x') }), 'a complete response makes room')
  t.throws(() => acquire({ a: large('y') }), { code: 'too_many_requests' })
})

t.test('values that no request uses are deleted after a time, and when there are many', async (t) => {
  const { clock, cache, acquire } = createCache()
  const used = acquire({ a: 'value-of-a' })
  acquire({ b: 'value-of-b' }).release()
  t.equal(cache.size, 2)
  clock.ms += MAX_UNUSED_MS
  cache.deleteUnused()
  t.equal(cache.size, 1)
  used.release()
  clock.ms += MAX_UNUSED_MS
  cache.deleteUnused()
  t.equal(cache.size, 0)
  for (let count = 0; count < 100; count += 1) acquire({ a: large('a') }, `ws_${count}`).release()
  t.ok(cache.size > 5 && cache.size < 50, `${cache.size} of 100 are kept`)
})
