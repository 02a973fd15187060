// The addresses to which no user of Boxwood may send a request, because they are not on the public internet.
import t from 'tap'
import { createAddressFilter, isPublicAddress } from '../../../coordinator/base/public-address.ts'

const PRIVATE = [
  ...['0.0.0.0', '10.0.0.1', '100.64.0.1', '127.0.0.1', '127.255.255.254', '169.254.169.254', '172.16.0.1'],
  ...['172.31.255.255', '192.0.0.1', '192.0.2.1', '192.168.1.1', '198.18.0.1', '198.51.100.1', '203.0.113.1'],
  ...['224.0.0.1', '240.0.0.1', '255.255.255.255'],
  ...[
    '::',
    '::1',
    'fe80::1',
    'fc00::1',
    'fd12:3456::1',
    'ff02::1',
    '2001:db8::1',
    '2002:7f00:1::1',
    '2001::1',
  ],
  ...['::ffff:127.0.0.1', '::ffff:169.254.169.254', '::ffff:a00:1', '::127.0.0.1', '64:ff9b::10.0.0.1'],
  ...['64:ff9b::7f00:1', '64:ff9b:1::808:808', '4000::1', '100::1'],
]
const PUBLIC = ['1.1.1.1', '172.32.0.1', '192.169.0.1', '2606:4700::1111', '2a00:1450::1']

t.test('private, local, multicast and reserved addresses are not public', async (t) => {
  for (const address of PRIVATE) t.equal(isPublicAddress(address), false, address)
  for (const address of [...PUBLIC, '::ffff:1.1.1.1', '64:ff9b::1.1.1.1'])
    t.equal(isPublicAddress(address), true, address)
})

t.test('a filter admits its ranges in all notations, and nothing else', async (t) => {
  const isAdmitted = createAddressFilter(['10.1.0.0/16', '127.0.0.1', 'fd00:1::/32', '::1'])
  for (const address of [
    '10.1.2.3',
    '127.0.0.1',
    '::ffff:10.1.2.3',
    '64:ff9b::10.1.2.3',
    'fd00:1::5',
    '::1',
    '1.1.1.1',
  ])
    t.equal(isAdmitted(address), true, address)
  for (const address of ['10.2.0.1', '127.0.0.2', '::ffff:7f00:2', '::7f00:1', 'fd00:2::5', '::2', 'fe80::1'])
    t.equal(isAdmitted(address), false, address)
})
