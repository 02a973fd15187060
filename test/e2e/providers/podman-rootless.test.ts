// The life of a box in Podman as an ordinary user.
import { testLifeOfABox } from './life-of-a-box.ts'

testLifeOfABox('podman-rootless')
