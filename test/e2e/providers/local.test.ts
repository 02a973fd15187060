// The life of a box without an engine.
import { testLifeOfABox } from './life-of-a-box.ts'

testLifeOfABox('local')
