// The client imports only types of shared: its limits and binary messages are those of shared/attach-format.ts.
import t from 'tap'
import * as client from '../../../client/attach/format.ts'
import * as shared from '../../../shared/attach-format.ts'

t.same(client.CHANNELS, shared.CHANNELS)
t.same(client.ATTACH_LIMITS, shared.ATTACH_LIMITS)
t.same(client.SESSION_NAME_PATTERN, shared.SESSION_NAME_PATTERN)
for (const channel of ['stdin', 'stdout', 'stderr'] as const)
  t.same(
    Buffer.from(client.encodeChunk(channel, Buffer.from('ab'))),
    shared.encodeChunk(channel, Buffer.from('ab')),
  )
