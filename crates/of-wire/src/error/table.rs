//! The table of errors.  Each row: the error's name here and in text, and its code points
//! as (experimenter, first version, last version, type, code); the experimenter is 0 for
//! OpenFlow's own.  Where two errors share a code point in some version, the earlier row
//! is what that code point decodes as.

use super::CodePoint;

macro_rules! errors {
    ($($id:ident $name:literal { $(($exp:literal, $first:literal, $last:literal, $ty:literal, $code:literal)),* };)*) => {
        /// What is wrong with a request, whatever number the OpenFlow version has for it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum ErrorCode {
            $(#[doc = concat!("`", $name, "`.")] $id,)*
        }

        pub(super) const ALL: &[ErrorCode] = &[$(ErrorCode::$id),*];

        pub(super) static ERRORS: &[(&str, &[CodePoint])] = &[$(($name, &[$(CodePoint {
            experimenter: $exp,
            first: $first,
            last: $last,
            ty: $ty,
            code: $code,
        }),*])),*];
    };
}

errors! {
    OfphfcIncompatible "OFPHFC_INCOMPATIBLE" { (0x0, 1, 6, 0, 0) };
    OfphfcEperm "OFPHFC_EPERM" { (0x0, 1, 6, 0, 1) };
    OfpbrcBadVersion "OFPBRC_BAD_VERSION" { (0x0, 1, 6, 1, 0) };
    OfpbrcBadType "OFPBRC_BAD_TYPE" { (0x0, 1, 6, 1, 1) };
    OfpbrcBadStat "OFPBRC_BAD_STAT" { (0x0, 1, 6, 1, 2) };
    OfpbrcBadVendor "OFPBRC_BAD_VENDOR" { (0x0, 1, 6, 1, 3) };
    OfpbrcBadSubtype "OFPBRC_BAD_SUBTYPE" { (0x0, 1, 6, 1, 4) };
    OfpbrcEperm "OFPBRC_EPERM" { (0x0, 1, 6, 1, 5) };
    OfpbrcBadLen "OFPBRC_BAD_LEN" { (0x0, 1, 6, 1, 6) };
    OfpbrcBufferEmpty "OFPBRC_BUFFER_EMPTY" { (0x0, 1, 6, 1, 7) };
    OfpbrcBufferUnknown "OFPBRC_BUFFER_UNKNOWN" { (0x0, 1, 6, 1, 8) };
    OfpbrcBadTableId "OFPBRC_BAD_TABLE_ID" { (0x2320, 1, 1, 1, 512), (0x0, 2, 6, 1, 9) };
    OfpbrcIsSecondary "OFPBRC_IS_SECONDARY" { (0x0, 1, 2, 1, 5), (0x0, 3, 6, 1, 10) };
    OfpbrcBadPort "OFPBRC_BAD_PORT" { (0x2320, 1, 2, 1, 514), (0x0, 3, 6, 1, 11) };
    OfpbrcBadPacket "OFPBRC_BAD_PACKET" { (0x0, 3, 6, 1, 12) };
    OfpbrcMultipartBufferOverflow "OFPBRC_MULTIPART_BUFFER_OVERFLOW" { (0x0, 4, 6, 1, 13) };
    OfpbrcMultipartRequestTimeout "OFPBRC_MULTIPART_REQUEST_TIMEOUT" { (0x4f4e4600, 4, 4, 2640, 0), (0x0, 5, 6, 1, 14) };
    OfpbrcMultipartReplyTimeout "OFPBRC_MULTIPART_REPLY_TIMEOUT" { (0x4f4e4600, 4, 4, 2641, 0), (0x0, 5, 6, 1, 15) };
    OfpbrcMultipartBadSched "OFPBRC_MULTIPART_BAD_SCHED" { (0x0, 6, 6, 1, 16) };
    OfpbrcPipelineFieldsOnly "OFPBRC_PIPELINE_FIELDS_ONLY" { (0x0, 6, 6, 1, 17) };
    OfpbrcUnknown "OFPBRC_UNKNOWN" { (0x0, 6, 6, 1, 18) };
    NxbrcNxmInvalid "NXBRC_NXM_INVALID" { (0x2320, 1, 2, 1, 256), (0x2320, 3, 6, 2, 0) };
    NxbrcNxmBadType "NXBRC_NXM_BAD_TYPE" { (0x2320, 1, 2, 1, 257), (0x2320, 3, 6, 3, 0) };
    NxbrcMustBeZero "NXBRC_MUST_BE_ZERO" { (0x2320, 1, 2, 1, 515), (0x2320, 3, 6, 4, 0) };
    NxbrcBadReason "NXBRC_BAD_REASON" { (0x2320, 1, 2, 1, 516), (0x2320, 3, 6, 5, 0) };
    NxbrcFmBadEvent "NXBRC_FM_BAD_EVENT" { (0x2320, 1, 2, 1, 520), (0x2320, 3, 6, 9, 0) };
    NxbrcUnencodableError "NXBRC_UNENCODABLE_ERROR" { (0x2320, 1, 2, 1, 521), (0x2320, 3, 6, 10, 0) };
    OfpbacBadType "OFPBAC_BAD_TYPE" { (0x0, 1, 6, 2, 0) };
    OfpbacBadLen "OFPBAC_BAD_LEN" { (0x0, 1, 6, 2, 1) };
    OfpbacBadVendor "OFPBAC_BAD_VENDOR" { (0x0, 1, 6, 2, 2) };
    OfpbacBadVendorType "OFPBAC_BAD_VENDOR_TYPE" { (0x0, 1, 6, 2, 3) };
    OfpbacBadOutPort "OFPBAC_BAD_OUT_PORT" { (0x0, 1, 6, 2, 4) };
    OfpbacBadArgument "OFPBAC_BAD_ARGUMENT" { (0x0, 1, 6, 2, 5) };
    OfpbacEperm "OFPBAC_EPERM" { (0x0, 1, 6, 2, 6) };
    OfpbacTooMany "OFPBAC_TOO_MANY" { (0x0, 1, 6, 2, 7) };
    OfpbacBadQueue "OFPBAC_BAD_QUEUE" { (0x0, 1, 6, 2, 8) };
    OfpbacBadOutGroup "OFPBAC_BAD_OUT_GROUP" { (0x2320, 1, 1, 2, 9), (0x0, 2, 6, 2, 9) };
    OfpbacMatchInconsistent "OFPBAC_MATCH_INCONSISTENT" { (0x2320, 1, 1, 1, 522), (0x0, 2, 6, 2, 10) };
    OfpbacUnsupportedOrder "OFPBAC_UNSUPPORTED_ORDER" { (0x0, 2, 6, 2, 11) };
    OfpbacBadTag "OFPBAC_BAD_TAG" { (0x0, 2, 6, 2, 12) };
    OfpbacBadSetType "OFPBAC_BAD_SET_TYPE" { (0x2320, 1, 2, 1, 523), (0x0, 3, 6, 2, 13) };
    OfpbacBadSetLen "OFPBAC_BAD_SET_LEN" { (0x2320, 1, 2, 1, 524), (0x0, 3, 6, 2, 14) };
    OfpbacBadSetArgument "OFPBAC_BAD_SET_ARGUMENT" { (0x2320, 1, 2, 1, 525), (0x0, 3, 6, 2, 15) };
    OfpbacBadSetMask "OFPBAC_BAD_SET_MASK" { (0x4f4e4600, 4, 5, 4250, 0), (0x0, 6, 6, 2, 16) };
    OfpbacBadMeter "OFPBAC_BAD_METER" { (0x0, 6, 6, 2, 17) };
    NxbacMustBeZero "NXBAC_MUST_BE_ZERO" { (0x2320, 1, 2, 2, 256), (0x2320, 3, 6, 11, 0) };
    NxbacBadConjunction "NXBAC_BAD_CONJUNCTION" { (0x2320, 1, 2, 2, 526), (0x2320, 3, 6, 15, 0) };
    NxbacBadHeaderType "NXBAC_BAD_HEADER_TYPE" { (0x2320, 4, 6, 39, 0) };
    NxbacUnknownEdProp "NXBAC_UNKNOWN_ED_PROP" { (0x2320, 4, 6, 40, 0) };
    NxbacBadEdProp "NXBAC_BAD_ED_PROP" { (0x2320, 4, 6, 41, 0) };
    NxbacCtDatapathSupport "NXBAC_CT_DATAPATH_SUPPORT" { (0x2320, 1, 2, 1, 265), (0x2320, 3, 6, 42, 0) };
    OfpbicUnknownInst "OFPBIC_UNKNOWN_INST" { (0x0, 2, 6, 3, 0) };
    OfpbicUnsupInst "OFPBIC_UNSUP_INST" { (0x2320, 1, 1, 2, 257), (0x0, 2, 6, 3, 1) };
    OfpbicBadTableId "OFPBIC_BAD_TABLE_ID" { (0x0, 2, 6, 3, 2) };
    OfpbicUnsupMetadata "OFPBIC_UNSUP_METADATA" { (0x0, 2, 6, 3, 3) };
    OfpbicUnsupMetadataMask "OFPBIC_UNSUP_METADATA_MASK" { (0x0, 2, 6, 3, 4) };
    OfpbicBadExperimenter "OFPBIC_BAD_EXPERIMENTER" { (0x0, 2, 6, 3, 5) };
    OfpbicBadExpType "OFPBIC_BAD_EXP_TYPE" { (0x0, 2, 2, 3, 5), (0x0, 3, 6, 3, 6) };
    OfpbicBadLen "OFPBIC_BAD_LEN" { (0x0, 3, 6, 3, 7) };
    OfpbicEperm "OFPBIC_EPERM" { (0x0, 3, 6, 3, 8) };
    OfpbicDupInst "OFPBIC_DUP_INST" { (0x2320, 2, 2, 3, 256), (0x4f4e4600, 3, 4, 2600, 0), (0x0, 5, 6, 3, 9) };
    OfpbmcBadType "OFPBMC_BAD_TYPE" { (0x0, 2, 6, 4, 0) };
    OfpbmcBadLen "OFPBMC_BAD_LEN" { (0x0, 2, 6, 4, 1) };
    OfpbmcBadTag "OFPBMC_BAD_TAG" { (0x0, 2, 6, 4, 2) };
    OfpbmcBadDlAddrMask "OFPBMC_BAD_DL_ADDR_MASK" { (0x0, 2, 6, 4, 3) };
    OfpbmcBadNwAddrMask "OFPBMC_BAD_NW_ADDR_MASK" { (0x0, 2, 6, 4, 4) };
    OfpbmcBadWildcards "OFPBMC_BAD_WILDCARDS" { (0x2320, 1, 1, 1, 262), (0x0, 2, 6, 4, 5) };
    OfpbmcBadField "OFPBMC_BAD_FIELD" { (0x2320, 1, 1, 0, 263), (0x0, 2, 6, 4, 6) };
    OfpbmcBadValue "OFPBMC_BAD_VALUE" { (0x2320, 1, 1, 1, 258), (0x0, 2, 6, 4, 7) };
    OfpbmcBadMask "OFPBMC_BAD_MASK" { (0x2320, 1, 2, 1, 259), (0x0, 3, 6, 4, 8) };
    OfpbmcBadPrereq "OFPBMC_BAD_PREREQ" { (0x2320, 1, 2, 1, 260), (0x0, 3, 6, 4, 9) };
    OfpbmcDupField "OFPBMC_DUP_FIELD" { (0x2320, 1, 2, 1, 261), (0x0, 3, 6, 4, 10) };
    OfpbmcEperm "OFPBMC_EPERM" { (0x0, 3, 6, 4, 11) };
    NxbmcCtDatapathSupport "NXBMC_CT_DATAPATH_SUPPORT" { (0x2320, 1, 2, 1, 264), (0x2320, 3, 6, 43, 0) };
    OfpfmfcUnknown "OFPFMFC_UNKNOWN" { (0x0, 2, 6, 5, 0) };
    OfpfmfcTableFull "OFPFMFC_TABLE_FULL" { (0x0, 1, 1, 3, 0), (0x0, 2, 6, 5, 1) };
    OfpfmfcBadTableId "OFPFMFC_BAD_TABLE_ID" { (0x0, 2, 6, 5, 2) };
    OfpfmfcOverlap "OFPFMFC_OVERLAP" { (0x0, 1, 1, 3, 1), (0x0, 2, 6, 5, 3) };
    OfpfmfcEperm "OFPFMFC_EPERM" { (0x0, 1, 1, 3, 2), (0x0, 2, 6, 5, 4) };
    OfpfmfcBadTimeout "OFPFMFC_BAD_TIMEOUT" { (0x0, 2, 6, 5, 5) };
    OfpfmfcBadEmergTimeout "OFPFMFC_BAD_EMERG_TIMEOUT" { (0x0, 1, 1, 3, 3) };
    OfpfmfcBadCommand "OFPFMFC_BAD_COMMAND" { (0x0, 1, 1, 3, 4), (0x0, 2, 6, 5, 6) };
    OfpfmfcBadFlags "OFPFMFC_BAD_FLAGS" { (0x2320, 1, 1, 3, 258), (0x2320, 2, 2, 5, 258), (0x0, 3, 6, 5, 7) };
    OfpfmfcCantSync "OFPFMFC_CANT_SYNC" { (0x0, 5, 6, 5, 8) };
    OfpfmfcBadPriority "OFPFMFC_BAD_PRIORITY" { (0x4f4e4600, 4, 4, 2360, 0), (0x0, 5, 6, 5, 9) };
    OfpfmfcIsSync "OFPFMFC_IS_SYNC" { (0x0, 5, 6, 5, 10) };
    OfpfmfcUnsupported "OFPFMFC_UNSUPPORTED" { (0x0, 1, 1, 3, 5) };
    NxfmfcHardware "NXFMFC_HARDWARE" { (0x2320, 1, 2, 5, 256), (0x2320, 3, 6, 12, 0) };
    NxfmfcBadTableId "NXFMFC_BAD_TABLE_ID" { (0x2320, 1, 2, 5, 257), (0x2320, 3, 6, 13, 0) };
    NxfmfcInvalidTlvField "NXFMFC_INVALID_TLV_FIELD" { (0x2320, 1, 2, 1, 536), (0x2320, 3, 6, 37, 0) };
    OfpgmfcGroupExists "OFPGMFC_GROUP_EXISTS" { (0x2320, 1, 1, 6, 0), (0x0, 2, 6, 6, 0) };
    OfpgmfcInvalidGroup "OFPGMFC_INVALID_GROUP" { (0x2320, 1, 1, 6, 1), (0x0, 2, 6, 6, 1) };
    OfpgmfcWeightUnsupported "OFPGMFC_WEIGHT_UNSUPPORTED" { (0x2320, 1, 1, 6, 2), (0x0, 2, 6, 6, 2) };
    OfpgmfcOutOfGroups "OFPGMFC_OUT_OF_GROUPS" { (0x2320, 1, 1, 6, 3), (0x0, 2, 6, 6, 3) };
    OfpgmfcOutOfBuckets "OFPGMFC_OUT_OF_BUCKETS" { (0x2320, 1, 1, 6, 4), (0x0, 2, 6, 6, 4) };
    OfpgmfcChainingUnsupported "OFPGMFC_CHAINING_UNSUPPORTED" { (0x2320, 1, 1, 6, 5), (0x0, 2, 6, 6, 5) };
    OfpgmfcWatchUnsupported "OFPGMFC_WATCH_UNSUPPORTED" { (0x2320, 1, 1, 6, 6), (0x0, 2, 6, 6, 6) };
    OfpgmfcLoop "OFPGMFC_LOOP" { (0x2320, 1, 1, 6, 7), (0x0, 2, 6, 6, 7) };
    OfpgmfcUnknownGroup "OFPGMFC_UNKNOWN_GROUP" { (0x2320, 1, 1, 6, 8), (0x0, 2, 6, 6, 8) };
    OfpgmfcChainedGroup "OFPGMFC_CHAINED_GROUP" { (0x2320, 1, 1, 6, 9), (0x0, 3, 6, 6, 9) };
    OfpgmfcBadType "OFPGMFC_BAD_TYPE" { (0x2320, 1, 1, 6, 10), (0x0, 3, 6, 6, 10) };
    OfpgmfcBadCommand "OFPGMFC_BAD_COMMAND" { (0x2320, 1, 1, 6, 11), (0x0, 3, 6, 6, 11) };
    OfpgmfcBadBucket "OFPGMFC_BAD_BUCKET" { (0x2320, 1, 1, 6, 12), (0x0, 3, 6, 6, 12) };
    OfpgmfcBadWatch "OFPGMFC_BAD_WATCH" { (0x2320, 1, 1, 6, 13), (0x0, 3, 6, 6, 13) };
    OfpgmfcEperm "OFPGMFC_EPERM" { (0x2320, 1, 1, 6, 14), (0x0, 3, 6, 6, 14) };
    OfpgmfcUnknownBucket "OFPGMFC_UNKNOWN_BUCKET" { (0x2320, 1, 1, 6, 15), (0x0, 6, 6, 6, 15) };
    OfpgmfcBucketExists "OFPGMFC_BUCKET_EXISTS" { (0x2320, 1, 1, 6, 16), (0x0, 6, 6, 6, 16) };
    OfppmfcBadPort "OFPPMFC_BAD_PORT" { (0x0, 1, 1, 4, 0), (0x0, 2, 6, 7, 0) };
    OfppmfcBadHwAddr "OFPPMFC_BAD_HW_ADDR" { (0x0, 1, 1, 4, 1), (0x0, 2, 6, 7, 1) };
    OfppmfcBadConfig "OFPPMFC_BAD_CONFIG" { (0x0, 2, 6, 7, 2) };
    OfppmfcBadAdvertise "OFPPMFC_BAD_ADVERTISE" { (0x0, 2, 6, 7, 3) };
    OfppmfcEperm "OFPPMFC_EPERM" { (0x0, 3, 6, 7, 4) };
    OfptmfcBadTable "OFPTMFC_BAD_TABLE" { (0x0, 2, 6, 8, 0) };
    OfptmfcBadConfig "OFPTMFC_BAD_CONFIG" { (0x0, 2, 6, 8, 1) };
    OfptmfcEperm "OFPTMFC_EPERM" { (0x0, 3, 6, 8, 2) };
    OfpqofcBadPort "OFPQOFC_BAD_PORT" { (0x0, 1, 1, 5, 0), (0x0, 2, 6, 9, 0) };
    OfpqofcBadQueue "OFPQOFC_BAD_QUEUE" { (0x0, 1, 1, 5, 1), (0x0, 2, 6, 9, 1) };
    OfpqofcEperm "OFPQOFC_EPERM" { (0x0, 1, 1, 5, 2), (0x0, 2, 6, 9, 2) };
    NxqofcQueueError "NXQOFC_QUEUE_ERROR" { (0x2320, 5, 6, 23, 0) };
    OfpscfcBadFlags "OFPSCFC_BAD_FLAGS" { (0x0, 2, 6, 10, 0) };
    OfpscfcBadLen "OFPSCFC_BAD_LEN" { (0x0, 2, 6, 10, 1) };
    OfpscfcEperm "OFPSCFC_EPERM" { (0x0, 3, 6, 10, 2) };
    OfprrfcStale "OFPRRFC_STALE" { (0x0, 3, 6, 11, 0) };
    OfprrfcUnsup "OFPRRFC_UNSUP" { (0x0, 3, 6, 11, 1) };
    OfprrfcBadRole "OFPRRFC_BAD_ROLE" { (0x2320, 1, 2, 1, 513), (0x0, 3, 6, 11, 2) };
    OfprrfcIdUnsup "OFPRRFC_ID_UNSUP" { (0x0, 6, 6, 11, 3) };
    OfprrfcIdInUse "OFPRRFC_ID_IN_USE" { (0x0, 6, 6, 11, 4) };
    OfpmmfcUnknown "OFPMMFC_UNKNOWN" { (0x0, 4, 6, 12, 0) };
    OfpmmfcMeterExists "OFPMMFC_METER_EXISTS" { (0x0, 4, 6, 12, 1) };
    OfpmmfcInvalidMeter "OFPMMFC_INVALID_METER" { (0x0, 4, 6, 12, 2) };
    OfpmmfcUnknownMeter "OFPMMFC_UNKNOWN_METER" { (0x0, 4, 6, 12, 3) };
    OfpmmfcBadCommand "OFPMMFC_BAD_COMMAND" { (0x0, 4, 6, 12, 4) };
    OfpmmfcBadFlags "OFPMMFC_BAD_FLAGS" { (0x0, 4, 6, 12, 5) };
    OfpmmfcBadRate "OFPMMFC_BAD_RATE" { (0x0, 4, 6, 12, 6) };
    OfpmmfcBadBurst "OFPMMFC_BAD_BURST" { (0x0, 4, 6, 12, 7) };
    OfpmmfcBadBand "OFPMMFC_BAD_BAND" { (0x0, 4, 6, 12, 8) };
    OfpmmfcBadBandValue "OFPMMFC_BAD_BAND_VALUE" { (0x0, 4, 6, 12, 9) };
    OfpmmfcOutOfMeters "OFPMMFC_OUT_OF_METERS" { (0x0, 4, 6, 12, 10) };
    OfpmmfcOutOfBands "OFPMMFC_OUT_OF_BANDS" { (0x0, 4, 6, 12, 11) };
    OfptffcBadTable "OFPTFFC_BAD_TABLE" { (0x0, 4, 6, 13, 0) };
    OfptffcBadMetadata "OFPTFFC_BAD_METADATA" { (0x0, 4, 6, 13, 1) };
    OfptffcEperm "OFPTFFC_EPERM" { (0x0, 4, 6, 13, 5) };
    OfptffcBadCapa "OFPTFFC_BAD_CAPA" { (0x0, 6, 6, 13, 6) };
    OfptffcBadMaxEnt "OFPTFFC_BAD_MAX_ENT" { (0x0, 6, 6, 13, 7) };
    OfptffcBadFeatures "OFPTFFC_BAD_FEATURES" { (0x0, 6, 6, 13, 8) };
    OfptffcBadCommand "OFPTFFC_BAD_COMMAND" { (0x0, 6, 6, 13, 9) };
    OfptffcTooMany "OFPTFFC_TOO_MANY" { (0x0, 6, 6, 13, 10) };
    NxtffcDupTable "NXTFFC_DUP_TABLE" { (0x2320, 4, 6, 44, 0) };
    OfpbpcBadType "OFPBPC_BAD_TYPE" { (0x2320, 1, 2, 13, 2), (0x2320, 3, 3, 25, 0), (0x0, 4, 4, 13, 2), (0x0, 5, 6, 14, 0) };
    OfpbpcBadLen "OFPBPC_BAD_LEN" { (0x2320, 1, 2, 13, 3), (0x2320, 3, 3, 26, 0), (0x0, 4, 4, 13, 3), (0x0, 5, 6, 14, 1) };
    OfpbpcBadValue "OFPBPC_BAD_VALUE" { (0x2320, 1, 2, 13, 4), (0x2320, 3, 3, 27, 0), (0x0, 4, 4, 13, 4), (0x0, 5, 6, 14, 2) };
    OfpbpcTooMany "OFPBPC_TOO_MANY" { (0x2320, 1, 2, 14, 3), (0x2320, 3, 3, 28, 0), (0x4f4e4600, 4, 4, 4443, 0), (0x0, 5, 6, 14, 3) };
    OfpbpcDupType "OFPBPC_DUP_TYPE" { (0x2320, 1, 2, 14, 4), (0x2320, 3, 3, 29, 0), (0x4f4e4600, 4, 4, 4444, 0), (0x0, 5, 6, 14, 4) };
    OfpbpcBadExperimenter "OFPBPC_BAD_EXPERIMENTER" { (0x2320, 1, 2, 14, 5), (0x2320, 3, 3, 30, 0), (0x4f4e4600, 4, 4, 4445, 0), (0x0, 5, 6, 14, 5) };
    OfpbpcBadExpType "OFPBPC_BAD_EXP_TYPE" { (0x2320, 1, 2, 14, 6), (0x2320, 3, 3, 31, 0), (0x4f4e4600, 4, 4, 4446, 0), (0x0, 5, 6, 14, 6) };
    OfpbpcBadExpValue "OFPBPC_BAD_EXP_VALUE" { (0x2320, 1, 2, 14, 7), (0x2320, 3, 3, 32, 0), (0x4f4e4600, 4, 4, 4447, 0), (0x0, 5, 6, 14, 7) };
    OfpbpcEperm "OFPBPC_EPERM" { (0x2320, 1, 2, 14, 8), (0x2320, 3, 3, 33, 0), (0x4f4e4600, 4, 4, 4448, 0), (0x0, 5, 6, 14, 8) };
    OfpacfcInvalid "OFPACFC_INVALID" { (0x4f4e4600, 4, 4, 2370, 0), (0x0, 5, 6, 15, 0) };
    OfpacfcUnsupported "OFPACFC_UNSUPPORTED" { (0x4f4e4600, 4, 4, 2371, 0), (0x0, 5, 6, 15, 1) };
    OfpacfcEperm "OFPACFC_EPERM" { (0x4f4e4600, 4, 4, 2372, 0), (0x0, 5, 6, 15, 2) };
    OfpbfcUnknown "OFPBFC_UNKNOWN" { (0x4f4e4600, 4, 4, 2300, 0), (0x0, 5, 6, 17, 0) };
    OfpbfcEperm "OFPBFC_EPERM" { (0x4f4e4600, 4, 4, 2301, 0), (0x0, 5, 6, 17, 1) };
    OfpbfcBadId "OFPBFC_BAD_ID" { (0x4f4e4600, 4, 4, 2302, 0), (0x0, 5, 6, 17, 2) };
    OfpbfcBundleExist "OFPBFC_BUNDLE_EXIST" { (0x4f4e4600, 4, 4, 2303, 0), (0x0, 5, 6, 17, 3) };
    OfpbfcBundleClosed "OFPBFC_BUNDLE_CLOSED" { (0x4f4e4600, 4, 4, 2304, 0), (0x0, 5, 6, 17, 4) };
    OfpbfcOutOfBundles "OFPBFC_OUT_OF_BUNDLES" { (0x4f4e4600, 4, 4, 2305, 0), (0x0, 5, 6, 17, 5) };
    OfpbfcBadType "OFPBFC_BAD_TYPE" { (0x4f4e4600, 4, 4, 2306, 0), (0x0, 5, 6, 17, 6) };
    OfpbfcBadFlags "OFPBFC_BAD_FLAGS" { (0x4f4e4600, 4, 4, 2307, 0), (0x0, 5, 6, 17, 7) };
    OfpbfcMsgBadLen "OFPBFC_MSG_BAD_LEN" { (0x4f4e4600, 4, 4, 2308, 0), (0x0, 5, 6, 17, 8) };
    OfpbfcMsgBadXid "OFPBFC_MSG_BAD_XID" { (0x4f4e4600, 4, 4, 2309, 0), (0x0, 5, 6, 17, 9) };
    OfpbfcMsgUnsup "OFPBFC_MSG_UNSUP" { (0x4f4e4600, 4, 4, 2310, 0), (0x0, 5, 6, 17, 10) };
    OfpbfcMsgConflict "OFPBFC_MSG_CONFLICT" { (0x4f4e4600, 4, 4, 2311, 0), (0x0, 5, 6, 17, 11) };
    OfpbfcMsgTooMany "OFPBFC_MSG_TOO_MANY" { (0x4f4e4600, 4, 4, 2312, 0), (0x0, 5, 6, 17, 12) };
    OfpbfcMsgFailed "OFPBFC_MSG_FAILED" { (0x4f4e4600, 4, 4, 2313, 0), (0x0, 5, 6, 17, 13) };
    OfpbfcTimeout "OFPBFC_TIMEOUT" { (0x4f4e4600, 4, 4, 2314, 0), (0x0, 5, 6, 17, 14) };
    OfpbfcBundleInProgress "OFPBFC_BUNDLE_IN_PROGRESS" { (0x4f4e4600, 4, 4, 2315, 0), (0x0, 5, 6, 17, 15) };
    OfpbfcSchedNotSupported "OFPBFC_SCHED_NOT_SUPPORTED" { (0x0, 6, 6, 17, 16) };
    OfpbfcSchedFuture "OFPBFC_SCHED_FUTURE" { (0x0, 6, 6, 17, 17) };
    OfpbfcSchedPast "OFPBFC_SCHED_PAST" { (0x0, 6, 6, 17, 18) };
    OfpbfcBadVersion "OFPBFC_BAD_VERSION" { (0x2320, 5, 6, 22, 0) };
    OfpmofcUnknown "OFPMOFC_UNKNOWN" { (0x0, 5, 6, 16, 0) };
    OfpmofcMonitorExists "OFPMOFC_MONITOR_EXISTS" { (0x2320, 1, 2, 1, 517), (0x2320, 3, 4, 6, 0), (0x0, 5, 6, 16, 1) };
    OfpmofcInvalidMonitor "OFPMOFC_INVALID_MONITOR" { (0x0, 5, 6, 16, 2) };
    OfpmofcUnknownMonitor "OFPMOFC_UNKNOWN_MONITOR" { (0x2320, 1, 2, 1, 519), (0x2320, 3, 4, 8, 0), (0x0, 5, 6, 16, 3) };
    OfpmofcBadCommand "OFPMOFC_BAD_COMMAND" { (0x0, 5, 6, 16, 4) };
    OfpmofcBadFlags "OFPMOFC_BAD_FLAGS" { (0x2320, 1, 2, 1, 518), (0x2320, 3, 4, 7, 0), (0x0, 5, 6, 16, 5) };
    OfpmofcBadTableId "OFPMOFC_BAD_TABLE_ID" { (0x0, 5, 6, 16, 6) };
    OfpmofcBadOut "OFPMOFC_BAD_OUT" { (0x0, 5, 6, 16, 7) };
    NxttmfcBadCommand "NXTTMFC_BAD_COMMAND" { (0x2320, 1, 2, 1, 527), (0x2320, 3, 6, 16, 0) };
    NxttmfcBadOptLen "NXTTMFC_BAD_OPT_LEN" { (0x2320, 1, 2, 1, 528), (0x2320, 3, 6, 17, 0) };
    NxttmfcBadFieldIdx "NXTTMFC_BAD_FIELD_IDX" { (0x2320, 1, 2, 1, 529), (0x2320, 3, 6, 18, 0) };
    NxttmfcTableFull "NXTTMFC_TABLE_FULL" { (0x2320, 1, 2, 1, 530), (0x2320, 3, 6, 19, 0) };
    NxttmfcAlreadyMapped "NXTTMFC_ALREADY_MAPPED" { (0x2320, 1, 2, 1, 531), (0x2320, 3, 6, 20, 0) };
    NxttmfcDupEntry "NXTTMFC_DUP_ENTRY" { (0x2320, 1, 2, 1, 532), (0x2320, 3, 6, 21, 0) };
    NxttmfcInvalidTlvDel "NXTTMFC_INVALID_TLV_DEL" { (0x2320, 1, 2, 1, 537), (0x2320, 3, 6, 38, 0) };
    NxrNotSupported "NXR_NOT_SUPPORTED" { (0x2320, 1, 2, 1, 533), (0x2320, 3, 6, 34, 0) };
    NxrStale "NXR_STALE" { (0x2320, 1, 2, 1, 534), (0x2320, 3, 6, 35, 0) };
    NxstNotConfigured "NXST_NOT_CONFIGURED" { (0x2320, 1, 2, 1, 535), (0x2320, 3, 6, 36, 0) };
}
