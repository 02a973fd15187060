// Which changes of an API key take something from it: its open requests are checked again.
import t from 'tap'
import { isNarrower } from '../../../../coordinator/identity/keys/key-rules.ts'

t.test('a change is narrower when the key loses a box, a level or time', async (t) => {
  const unlimited = { box_ids: null, access: null, expires_at: null }
  const limited = {
    box_ids: '["a","b"]',
    access: '{"boxes":"write","workspace":"read"}',
    expires_at: 1000,
  }
  const cases: [before: object, after: object, expected: boolean][] = [
    [{}, {}, false],
    [{}, limited, true],
    [limited, unlimited, false],
    [{}, { box_ids: '["a"]' }, true],
    [limited, { ...limited, box_ids: '["a","b","c"]' }, false],
    [limited, { ...limited, box_ids: '["a"]' }, true],
    [limited, { ...limited, box_ids: '["a","c"]' }, true],
    [{}, { access: '{"boxes":"write","workspace":"read"}' }, true],
    [{}, { access: '{"boxes":"write"}' }, true],
    [limited, { ...limited, access: '{"boxes":"write","workspace":"write"}' }, false],
    [limited, { ...limited, access: '{"boxes":"read","workspace":"write"}' }, true],
    [{}, { expires_at: 1 }, true],
    [limited, { ...limited, expires_at: 999 }, true],
    [limited, { ...limited, expires_at: 1001 }, false],
    [limited, { ...limited, expires_at: null }, false],
  ]
  for (const [before, after, expected] of cases)
    t.equal(
      isNarrower({ ...unlimited, ...before }, { ...unlimited, ...after }),
      expected,
      `${JSON.stringify(before)} to ${JSON.stringify(after)}`,
    )
})
