// The life of a box in Podman as root.
import { testLifeOfABox } from './life-of-a-box.ts'

testLifeOfABox('podman')
