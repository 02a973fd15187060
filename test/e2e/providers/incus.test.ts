// The life of a box in Incus.
import { testLifeOfABox } from './life-of-a-box.ts'

testLifeOfABox('incus')
