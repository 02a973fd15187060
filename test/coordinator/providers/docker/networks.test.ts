// The choice of a subnet for the network of a box.
import t from 'tap'
import { listFreeSubnets } from '../../../../coordinator/providers/docker/networks.ts'

const CASES: { name: string; ranges: string[]; used: string[]; expected: string[] }[] = [
  {
    name: 'the first ones of an empty range',
    ranges: ['10.213.0.0/28'],
    used: [],
    expected: ['10.213.0.0/29', '10.213.0.8/29'],
  },
  {
    name: 'none that is used',
    ranges: ['10.213.0.0/27'],
    used: ['10.213.0.8/29', '10.213.0.24/29'],
    expected: ['10.213.0.0/29', '10.213.0.16/29'],
  },
  {
    name: 'none in a larger or smaller used subnet',
    ranges: ['10.213.0.0/26'],
    used: ['10.213.0.0/27', '10.213.0.33/32', '172.17.0.0/16', 'fd00::/64'],
    expected: ['10.213.0.40/29', '10.213.0.48/29', '10.213.0.56/29'],
  },
  {
    name: 'the next range when one is used up',
    ranges: ['10.213.0.0/29', '10.214.255.248/29'],
    used: ['10.0.0.0/9', '10.213.0.0/16'],
    expected: ['10.214.255.248/29'],
  },
  { name: 'none in a range that is too small', ranges: ['10.213.0.0/30'], used: [], expected: [] },
]

for (const { name, ranges, used, expected } of CASES)
  t.test(`yields ${name}`, async (t) => t.same([...listFreeSubnets(ranges, used)], expected))
