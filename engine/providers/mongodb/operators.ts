// What of MongoDB's language may be used: nothing that runs JavaScript, writes, leaves the collection, or tells of the server. A name
// that is not in these lists is refused, so that what a later version adds is, too.

const words = (text: string): ReadonlySet<string> =>
  new Set(text.split(/\s+/).flatMap((word) => (word ? [`$${word}`] : [])));

export const FILTER = words(`
  and or nor not expr
  eq ne gt gte lt lte in nin exists type
  all elemMatch size mod regex options
  bitsAllClear bitsAllSet bitsAnyClear bitsAnySet
  geoWithin geoIntersects geometry box polygon center centerSphere
`);

export const EXPRESSION = words(`
  abs add ceil divide exp floor ln log log10 mod multiply pow rand round sqrt subtract trunc
  sin cos tan asin acos atan atan2 degreesToRadians radiansToDegrees
  arrayElemAt arrayToObject concatArrays filter first firstN in indexOfArray isArray last lastN map maxN minN objectToArray
  range reduce reverseArray size slice sortArray zip
  and or not cmp eq gt gte lt lte ne cond ifNull switch
  dateAdd dateDiff dateFromParts dateFromString dateSubtract dateToParts dateToString dateTrunc dayOfMonth dayOfWeek dayOfYear
  hour isoDayOfWeek isoWeek isoWeekYear millisecond minute month second week year
  literal let getField setField unsetField mergeObjects
  allElementsTrue anyElementTrue setDifference setEquals setIntersection setIsSubset setUnion
  concat indexOfBytes indexOfCP ltrim regexFind regexFindAll regexMatch replaceAll replaceOne rtrim split strLenBytes strLenCP
  strcasecmp substr substrBytes substrCP toLower toString toUpper trim
  convert isNumber toBool toDate toDecimal toDouble toInt toLong toObjectId type binarySize bsonSize
  addToSet avg bottom bottomN count max median min percentile push stdDevPop stdDevSamp sum top topN
  covariancePop covarianceSamp denseRank derivative documentNumber expMovingAvg integral linearFill locf rank shift
`);

/** Stages of which every part is an expression. */
export const EXPRESSION_STAGES = words(`
  addFields bucket bucketAuto densify fill group project redact replaceRoot replaceWith set setWindowFields sortByCount
`);

/** Stages that take plain values. */
export const VALUE_STAGES = words('count limit sample skip sort unset unwind');

export const UPDATE = words(`
  addToSet bit currentDate inc max min mul pop pull pullAll push rename set unset
`);

/** What may stand in a value of `$push` and `$addToSet`. */
export const MODIFIERS = words('each position slice sort');
